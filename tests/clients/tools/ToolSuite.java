/** Kafka's own command line tools against a bootstrap server. */
final class ToolSuite {
    private ToolSuite() {}

    public static void main(String[] arguments) throws Exception {
        Suite suite = new Suite(arguments);
        Fixture fixture = new Fixture(suite.bootstrap);
        TopicToolCases.addTo(suite, fixture);
        RecordToolCases.addTo(suite, fixture);
        GroupToolCases.addTo(suite, fixture);
        if (suite.logDirectory != null) {
            LogToolCases.addTo(suite, fixture);
        }
        suite.finish();
    }
}
