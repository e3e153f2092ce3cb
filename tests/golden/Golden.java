// Writes golden bytes of every message and log record of Apache Kafka 4.4.0, by Kafka's own classes.
//
// Run by hand when the schemas change, with the jars that tests/peers/kafka/fetch brings:
//   java -cp "$(tests/peers/kafka/fetch)/*" tests/golden/Golden.java server/protocol/golden
//
// Each message is filled by reflection with values that depend on nothing but their order: which fields a version has,
// and which may be null, is asked of the class's own SCHEMAS, not of our notation. Files written, one line an item,
// fields separated by one space:
//   messages.txt   FOLDER NAME VERSION VARIANT HEX   (variants: default, full, null)
//   downgrades.txt FOLDER NAME VERSION FIELD HEX TARGET OUTCOME
//                  the message with nothing but FIELD set, and what writing it in a version without FIELD gives:
//                  hex, or "refused"
//   records.txt    LOG TYPE VERSION KEY VALUE   (records as they are in a log, with prefixes and frames; hex, - for none)
//   apis.txt       CODE NAME FIRST LAST LAST_STABLE LISTENERS REQUEST_HEADERS RESPONSE_HEADERS (the last two by version)

import java.io.File;
import java.io.PrintWriter;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.serialization.AbstractApiMessageSerde;

public class Golden {
    /** The packages with generated classes, and the folder of our notation that each one's messages are in. */
    static final Map<String, String> FOLDERS = Map.of(
        "org/apache/kafka/common/message/", "messages",
        "org/apache/kafka/common/metadata/", "metadata",
        "org/apache/kafka/coordinator/group/generated/", "group_coordinator",
        "org/apache/kafka/coordinator/transaction/generated/", "transaction_coordinator",
        "org/apache/kafka/coordinator/share/generated/", "share_coordinator",
        "org/apache/kafka/raft/generated/", "raft",
        "org/apache/kafka/server/log/remote/metadata/storage/generated/", "storage",
        "org/apache/kafka/storage/internals/log/generated/", "storage",
        "org/apache/kafka/server/log/internals/generated/", "storage");

    enum Variant { FULL, NULL }

    public static void main(String[] arguments) throws Exception {
        Path out = Path.of(arguments[0]);
        Files.createDirectories(out);
        Map<String, Class<?>> classes = classes();
        try (PrintWriter messages = writer(out.resolve("messages.txt"));
             PrintWriter downgrades = writer(out.resolve("downgrades.txt"));
             PrintWriter records = writer(out.resolve("records.txt"));
             PrintWriter apis = writer(out.resolve("apis.txt"))) {
            for (Map.Entry<String, Class<?>> entry : classes.entrySet()) {
                Constructor<?> constructor = entry.getValue().getConstructor();
                messages(messages, entry.getKey(), constructor);
                downgrades(downgrades, entry.getKey(), entry.getValue(), List.of(), entry.getValue());
            }
            records(records, classes);
            apis(apis);
        }
        System.out.println(classes.size() + " messages");
    }

    static PrintWriter writer(Path path) throws Exception {
        return new PrintWriter(Files.newBufferedWriter(path, StandardCharsets.US_ASCII));
    }

    /** All generated classes on the class path, by "FOLDER NAME". */
    static Map<String, Class<?>> classes() throws Exception {
        Map<String, Class<?>> found = new TreeMap<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.endsWith(".jar") || path.contains("kafka-streams")) continue;
            try (JarFile jar = new JarFile(path)) {
                List<String> names = jar.stream().map(entry -> entry.getName()).collect(Collectors.toList());
                for (String name : names) {
                    int slash = name.lastIndexOf('/') + 1;
                    String folder = FOLDERS.get(name.substring(0, slash));
                    if (folder == null || !name.endsWith(".class") || name.contains("$")) continue;
                    Class<?> type = Class.forName(name.substring(0, name.length() - 6).replace('/', '.'));
                    if (!ApiMessage.class.isAssignableFrom(type) || type.isInterface()) continue;
                    String message = type.getSimpleName().replaceAll("(Request|Response|RequestHeader|ResponseHeader)Data$", "$1");
                    found.put(folder + " " + message, type);
                }
            }
        }
        return found;
    }

    static void messages(PrintWriter out, String name, Constructor<?> constructor) throws Exception {
        ApiMessage empty = (ApiMessage) constructor.newInstance();
        for (short version = empty.lowestSupportedVersion(); version <= empty.highestSupportedVersion(); version++) {
            try {
                String hex = hex(empty, version);
                out.println(name + " " + version + " default " + hex);
            } catch (NullPointerException noDefault) {
                // Records that may not be null have no default that can be written.
            }
            for (Variant variant : Variant.values()) {
                Message message = filled(constructor, schema(constructor.getDeclaringClass(), version), variant, new Values());
                out.println(name + " " + version + " " + variant.name().toLowerCase(Locale.ROOT) + " " + hex(message, version));
            }
        }
    }

    static void downgrades(PrintWriter out, String name, Class<?> root, List<Field> outer, Class<?> type) throws Exception {
        for (Field field : fields(type)) {
            List<Field> path = new ArrayList<>(outer);
            path.add(field);
            downgrade(out, name, root, path);
            Class<?> inner = structOf(field.getGenericType());
            if (inner != null) downgrades(out, name, root, path, inner);
        }
    }

    static void downgrade(PrintWriter out, String name, Class<?> root, List<Field> path) throws Exception {
        ApiMessage empty = (ApiMessage) root.getConstructor().newInstance();
        short last = empty.highestSupportedVersion();
        while (last >= empty.lowestSupportedVersion() && find(schema(root, last), path) == null) last--;
        if (last < empty.lowestSupportedVersion()) return;
        Message message = withOnly(root, path, find(schema(root, last), path));
        String hex;
        try {
            hex = hex(message, last);
        } catch (NullPointerException | UnsupportedVersionException otherFieldsNeeded) {
            return;
        }
        for (short target = empty.lowestSupportedVersion(); target <= empty.highestSupportedVersion(); target++) {
            boolean outerIsThere = path.size() == 1 || find(schema(root, target), path.subList(0, path.size() - 1)) != null;
            if (!outerIsThere || find(schema(root, target), path) != null) continue;
            String outcome;
            try {
                outcome = hex(message, target);
            } catch (UnsupportedVersionException refused) {
                outcome = "refused";
            }
            String field = path.stream().map(Field::getName).collect(Collectors.joining("."));
            out.println(String.join(" ", name, "" + last, field, hex, "" + target, outcome));
        }
    }

    /** A message in which nothing is set but the field at the end of the path; arrays on the way have one element. */
    static Message withOnly(Class<?> root, List<Field> path, Type kind) throws Exception {
        Message message = (Message) root.getConstructor().newInstance();
        Object at = message;
        for (Field field : path.subList(0, path.size() - 1)) {
            Constructor<?> constructor = structOf(field.getGenericType()).getDeclaredConstructor();
            constructor.setAccessible(true);
            Object inner = constructor.newInstance();
            if (Collection.class.isAssignableFrom(field.getType())) {
                Collection<Object> collection = emptyCollection(field.getType());
                collection.add(inner);
                field.set(at, collection);
            } else {
                field.set(at, inner);
            }
            at = inner;
        }
        Field last = path.get(path.size() - 1);
        last.set(at, value(last.getGenericType(), kind, Variant.FULL, new Values(), true));
        return message;
    }

    @SuppressWarnings("unchecked")
    static Collection<Object> emptyCollection(Class<?> type) throws Exception {
        return type.isInterface() ? new ArrayList<>() : (Collection<Object>) type.getConstructor().newInstance();
    }

    /** The class of the struct that a field holds or is an array of, or null. */
    static Class<?> structOf(java.lang.reflect.Type java) {
        Class<?> type = classOf(java);
        if (Collection.class.isAssignableFrom(type)) type = classOf(elementOf(java));
        return Message.class.isAssignableFrom(type) ? type : null;
    }

    static Class<?> classOf(java.lang.reflect.Type java) {
        return java instanceof ParameterizedType generic ? (Class<?>) generic.getRawType() : (Class<?>) java;
    }

    static java.lang.reflect.Type elementOf(java.lang.reflect.Type collection) {
        return collection instanceof ParameterizedType generic
            ? generic.getActualTypeArguments()[0]
            : ((ParameterizedType) ((Class<?>) collection).getGenericSuperclass()).getActualTypeArguments()[0];
    }

    /** Records as they are in Kafka's logs: keys and values with their prefixes and frames. */
    static void records(PrintWriter out, Map<String, Class<?>> classes) throws Exception {
        for (Map.Entry<String, Class<?>> entry : classes.entrySet()) {
            String[] name = entry.getKey().split(" ");
            boolean isValue = name[1].endsWith("Value");
            if (name[0].equals("metadata") || (name[0].equals("storage") && !name[1].equals("ProducerSnapshot"))) {
                framed(out, name[0], entry.getValue());
            } else if (isValue && name[0].endsWith("_coordinator")) {
                Class<?> key = classes.get(name[0] + " " + name[1].replaceAll("Value$", "Key"));
                coordinator(out, name[0], key, entry.getValue());
            }
        }
        snapshot(out, classes.get("storage ProducerSnapshot"));
        for (ControlRecordType type : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
            control(out, type, new EndTransactionMarker(type, 77).serializeValue());
        }
        LeaderChangeMessage leader = (LeaderChangeMessage) full(LeaderChangeMessage.class, (short) 0);
        control(out, MemoryRecords.withLeaderChangeMessage(0, 1, 2, ByteBuffer.allocate(1000), leader.setVersion((short) 0)));
        SnapshotHeaderRecord header = (SnapshotHeaderRecord) full(SnapshotHeaderRecord.class, (short) 0);
        control(out, MemoryRecords.withSnapshotHeaderRecord(0, 1, 2, ByteBuffer.allocate(1000), header.setVersion((short) 0)));
        SnapshotFooterRecord footer = (SnapshotFooterRecord) full(SnapshotFooterRecord.class, (short) 0);
        control(out, MemoryRecords.withSnapshotFooterRecord(0, 1, 2, ByteBuffer.allocate(1000), footer.setVersion((short) 0)));
        KRaftVersionRecord version = (KRaftVersionRecord) full(KRaftVersionRecord.class, (short) 0);
        control(out, MemoryRecords.withKRaftVersionRecord(0, 1, 2, ByteBuffer.allocate(1000), version.setVersion((short) 0)));
        VotersRecord voters = (VotersRecord) full(VotersRecord.class, (short) 0);
        control(out, MemoryRecords.withVotersRecord(0, 1, 2, ByteBuffer.allocate(1000), voters.setVersion((short) 0)));
    }

    static ApiMessage full(Class<?> type, short version) throws Exception {
        return (ApiMessage) filled(type.getConstructor(), schema(type, version), Variant.FULL, new Values());
    }

    static void framed(PrintWriter out, String log, Class<?> type) throws Exception {
        AbstractApiMessageSerde serde = new AbstractApiMessageSerde() {
            @Override
            public ApiMessage apiMessageFor(short key) {
                throw new UnsupportedOperationException();
            }
        };
        ApiMessage empty = full(type, ((ApiMessage) type.getConstructor().newInstance()).highestSupportedVersion());
        for (short version = empty.lowestSupportedVersion(); version <= empty.highestSupportedVersion(); version++) {
            ApiMessageAndVersion record = new ApiMessageAndVersion(full(type, version), version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(serde.recordSize(record, cache));
            serde.write(record, cache, new ByteBufferAccessor(buffer));
            record(out, log, empty.apiKey(), version, new byte[0], buffer.array());
        }
    }

    static void coordinator(PrintWriter out, String log, Class<?> keyType, Class<?> valueType) throws Exception {
        ApiMessage key = full(keyType, (short) 0);
        ApiMessage empty = (ApiMessage) valueType.getConstructor().newInstance();
        for (short version = empty.lowestSupportedVersion(); version <= empty.highestSupportedVersion(); version++) {
            record(out, log, key.apiKey(), version, MessageUtil.toCoordinatorTypePrefixedBytes(key),
                MessageUtil.toVersionPrefixedBytes(version, full(valueType, version)));
        }
    }

    static void snapshot(PrintWriter out, Class<?> type) throws Exception {
        record(out, "snapshot", 0, 1, new byte[0], MessageUtil.toVersionPrefixedBytes((short) 1, full(type, (short) 1)));
    }

    static void control(PrintWriter out, MemoryRecords records) {
        Record record = records.records().iterator().next();
        control(out, ControlRecordType.parse(record.key()), record.value());
    }

    static void control(PrintWriter out, ControlRecordType type, ByteBuffer value) {
        record(out, "control", type.type(), 0, bytes(type.recordKey()), bytes(value));
    }

    static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    static void record(PrintWriter out, String log, int type, int version, byte[] key, byte[] value) {
        String keyHex = key.length == 0 ? "-" : HexFormat.of().formatHex(key);
        out.println(String.join(" ", log, "" + type, "" + version, keyHex, HexFormat.of().formatHex(value)));
    }

    static void apis(PrintWriter out) {
        for (ApiMessageType api : ApiMessageType.values()) {
            short first = api.lowestSupportedVersion();
            short last = api.highestSupportedVersion(true);
            if (last < first) continue;
            List<String> requests = new ArrayList<>();
            List<String> responses = new ArrayList<>();
            for (short version = first; version <= last; version++) {
                requests.add("" + api.requestHeaderVersion(version));
                responses.add("" + api.responseHeaderVersion(version));
            }
            String listeners = api.listeners().stream().map(kind -> kind.name().toLowerCase(Locale.ROOT)).collect(Collectors.joining(","));
            out.println(String.join(" ", "" + api.apiKey(), api.name, "" + first, "" + last, "" + api.highestSupportedVersion(false),
                listeners, String.join(",", requests), String.join(",", responses)));
        }
    }

    static String hex(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor buffer = new ByteBufferAccessor(ByteBuffer.allocate(message.size(cache, version)));
        message.write(buffer, cache, version);
        if (buffer.buffer().hasRemaining()) throw new IllegalStateException("size and write differ");
        String hex = HexFormat.of().formatHex(buffer.buffer().array());
        return hex.isEmpty() ? "-" : hex;
    }

    static Schema schema(Class<?> type, short version) throws Exception {
        return ((Schema[]) type.getField("SCHEMAS").get(null))[version];
    }

    /** The fields that hold the message's content. */
    static List<Field> fields(Class<?> type) {
        List<Field> fields = new ArrayList<>();
        for (Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || field.getName().startsWith("_")) continue;
            if (field.getName().equals("next") || field.getName().equals("prev")) {
                if (field.getType() == int.class && !Modifier.isPublic(field.getModifiers()) && hasElementLinks(type)) continue;
            }
            field.setAccessible(true);
            fields.add(field);
        }
        return fields;
    }

    static boolean hasElementLinks(Class<?> type) {
        for (Class<?> implemented : type.getInterfaces()) {
            if (implemented.getName().contains("ImplicitLinkedHash")) return true;
        }
        return false;
    }

    /** The type that the schema gives the field, or null if it does not have it. */
    static Type find(Schema schema, String field) {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (org.apache.kafka.common.protocol.types.Field one : tagged.fields().values()) {
                    if (same(one.name, field)) return one.type;
                }
            } else if (same(bound.def.name, field)) {
                return bound.def.type;
            }
        }
        return null;
    }

    /** The same for a field within structs and arrays of structs. */
    static Type find(Schema schema, List<Field> path) throws Exception {
        Type found = find(schema, path.get(0).getName());
        if (found == null || path.size() == 1) return found;
        Type inner = found.isArray() ? found.arrayElementType().get() : found;
        return find(schemaOf(inner), path.subList(1, path.size()));
    }

    static boolean isTagged(Schema schema, String field) {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                return tagged.fields().values().stream().anyMatch(one -> same(one.name, field));
            }
        }
        return false;
    }

    static boolean isFlexible(Schema schema) {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) return true;
        }
        return false;
    }

    /** Schemas write snake case, classes camel case. */
    static boolean same(String snake, String camel) {
        return snake.replace("_", "").equalsIgnoreCase(camel);
    }

    static Message filled(Constructor<?> constructor, Schema schema, Variant variant, Values values) throws Exception {
        constructor.setAccessible(true);
        Message message = (Message) constructor.newInstance();
        int found = 0;
        for (Field field : fields(constructor.getDeclaringClass())) {
            Type kind = find(schema, field.getName());
            if (kind == null) continue;
            found++;
            // A null stands for itself only where it is not what the field has anyway and would not be written.
            boolean full = variant == Variant.FULL || isTagged(schema, field.getName());
            field.set(message, value(field.getGenericType(), kind, variant, values, full));
        }
        int expected = 0;
        for (BoundField bound : schema.fields()) {
            expected += bound.def.type instanceof TaggedFields tagged ? tagged.fields().size() : 1;
        }
        if (found != expected) throw new IllegalStateException(constructor.getDeclaringClass() + ": fields not found");
        if (variant == Variant.NULL && isFlexible(schema)) {
            message.unknownTaggedFields().add(new RawTaggedField(100 + values.next() % 100, values.bytes(3)));
            message.unknownTaggedFields().add(new RawTaggedField(20000, new byte[0]));
        }
        return message;
    }

    static Object value(java.lang.reflect.Type java, Type kind, Variant variant, Values values, boolean full) throws Exception {
        Class<?> type = classOf(java);
        if (!full && kind.isNullable()) return null;
        if (Collection.class.isAssignableFrom(type)) {
            Collection<Object> collection = emptyCollection(type);
            java.lang.reflect.Type element = elementOf(java);
            int count = variant == Variant.FULL ? 2 : 1;
            Type elementKind = kind.arrayElementType().get();
            for (int at = 0; at < count; at++) {
                collection.add(value(element, elementKind, variant, values, true));
            }
            return collection;
        }
        if (Message.class.isAssignableFrom(type)) {
            return filled(type.getDeclaredConstructor(), schemaOf(kind), variant, values);
        }
        if (type == boolean.class) return true;
        if (type == byte.class || type == Byte.class) return (byte) values.number(8);
        if (type == short.class || type == Short.class) return (short) values.number(16);
        if (type == int.class || type == Integer.class) {
            boolean unsigned = kind == Type.UINT16;
            return unsigned ? (int) (values.number(16) & 0xffff) : (int) values.number(32);
        }
        if (type == long.class || type == Long.class) {
            boolean unsigned = kind == Type.UNSIGNED_INT32;
            return unsigned ? values.number(32) & 0xffffffffL : values.number(64);
        }
        if (type == double.class) return values.next() + 0.25;
        if (type == String.class) return values.text();
        if (type == Uuid.class) return new Uuid(values.number(64), values.number(64));
        if (type == byte[].class) return values.bytes(values.next() % 5 + 1);
        if (type == ByteBuffer.class) return ByteBuffer.wrap(values.bytes(values.next() % 5 + 1));
        if (BaseRecords.class.isAssignableFrom(type)) return MemoryRecords.readableRecords(ByteBuffer.wrap(values.bytes(20)));
        throw new IllegalStateException("no value for " + java);
    }

    /** The schema of a struct, which a nullable struct wraps. */
    static Schema schemaOf(Type kind) throws Exception {
        if (kind instanceof Schema schema) return schema;
        for (Class<?> type = kind.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (!Schema.class.isAssignableFrom(field.getType())) continue;
                field.setAccessible(true);
                return (Schema) field.get(kind);
            }
        }
        throw new IllegalStateException("no schema in " + kind.getClass());
    }

    /** Values in a fixed order: none is a default, signs and sizes vary. */
    static class Values {
        int count = 0;

        int next() {
            return ++count;
        }

        long number(int bits) {
            int at = next();
            switch (at % 5) {
                case 0: return 5 + at % 40;
                case 1: return -(3 + at % 40L);
                case 2: return (1L << (bits - 1)) - 3 - at % 40;
                case 3: return -(1L << (bits - 1)) + 3 + at % 40;
                default: return (1L << (bits - 2)) | (5 + at % 40);
            }
        }

        String text() {
            int at = next();
            if (at % 17 == 0) return "long-" + "x".repeat(130) + at;
            return at % 3 == 0 ? "täxt-" + at : "text-" + at;
        }

        byte[] bytes(int length) {
            byte[] bytes = new byte[length];
            for (int i = 0; i < length; i++) bytes[i] = (byte) (next() * 37);
            return bytes;
        }
    }
}
