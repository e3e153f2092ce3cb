/** Kafka's own Java clients against a bootstrap server. */
final class JavaSuite {
    private JavaSuite() {}

    public static void main(String[] arguments) throws Exception {
        Suite suite = new Suite(arguments);
        Fixture fixture = new Fixture(suite.bootstrap);
        TopicCases.addTo(suite, fixture);
        ProducerCases.addTo(suite, fixture);
        ConsumerCases.addTo(suite, fixture);
        GroupCases.addTo(suite, fixture);
        ConfigCases.addTo(suite, fixture);
        suite.finish();
    }
}
