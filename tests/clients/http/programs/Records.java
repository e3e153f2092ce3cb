// Writes a record and reads it: Records.java BASE TOPIC
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Records {
    public static void main(String[] arguments) throws Exception {
        var client = HttpClient.newHttpClient();
        var records = arguments[0] + "/api/v1/topics/" + arguments[1] + "/records";
        var body = "{\"records\":[{\"key\":\"java\",\"value\":{\"from\":\"java\",\"n\":9223372036854775807}}]}";
        var write = HttpRequest.newBuilder(URI.create(records)).header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        System.out.println(client.send(write, HttpResponse.BodyHandlers.ofString()).body());
        var read = HttpRequest.newBuilder(URI.create(records + "?from=earliest&wait=5000")).build();
        System.out.println(client.send(read, HttpResponse.BodyHandlers.ofString()).body());
    }
}
