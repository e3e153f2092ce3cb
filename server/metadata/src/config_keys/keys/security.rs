//! Broker keys of authentication, authorisation and TLS.

use super::super::check::Check;
use super::super::definition::{KeyDefinition, boolean, class, double, int, list, long, password, short, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    string("authorizer.class.name")
        .default("")
        .low()
        .no_meaning()
        .doc("A Java class that decides who may do what."),
    int("connection.failed.authentication.delay.ms")
        .default("100")
        .at_least(0)
        .low()
        .doc("How long a connection stays open after its authentication failed."),
    long("connections.max.reauth.ms")
        .default("0")
        .doc("How long a SASL session lasts before the client must authenticate again; 0 for no limit."),
    long("delegation.token.expiry.check.interval.ms")
        .default("3600000")
        .at_least(1)
        .low()
        .doc("The time between two sweeps of expired delegation tokens."),
    long("delegation.token.expiry.time.ms")
        .default("86400000")
        .at_least(1)
        .doc("How long a delegation token is good without renewal."),
    long("delegation.token.max.lifetime.ms")
        .default("604800000")
        .at_least(1)
        .doc("How long a delegation token can be renewed."),
    password("delegation.token.secret.key").doc("The secret that delegation tokens are signed with."),
    class("principal.builder.class")
        .default("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder")
        .per_broker()
        .no_meaning()
        .doc("A Java class that names who connected."),
    class("sasl.client.callback.handler.class")
        .no_meaning()
        .doc("A Java class for SASL clients."),
    list("sasl.enabled.mechanisms")
        .default("GSSAPI")
        .check(Check::Entries)
        .per_broker()
        .doc("The SASL mechanisms that are offered."),
    password("sasl.jaas.config")
        .per_broker()
        .doc("Login modules and their options, secrets among them."),
    string("sasl.kerberos.kinit.cmd")
        .default("/usr/bin/kinit")
        .per_broker()
        .no_meaning()
        .doc("The path of kinit."),
    long("sasl.kerberos.min.time.before.relogin")
        .default("60000")
        .per_broker()
        .doc("The least time between two Kerberos logins."),
    list("sasl.kerberos.principal.to.local.rules")
        .default("DEFAULT")
        .check(Check::Entries)
        .per_broker()
        .doc("How Kerberos names become short names."),
    string("sasl.kerberos.service.name")
        .per_broker()
        .doc("The Kerberos name of the brokers."),
    double("sasl.kerberos.ticket.renew.jitter")
        .default("0.05")
        .per_broker()
        .doc("The random part of the ticket's renewal time."),
    double("sasl.kerberos.ticket.renew.window.factor")
        .default("0.8")
        .per_broker()
        .doc("At what part of its life a ticket is renewed."),
    class("sasl.login.callback.handler.class")
        .no_meaning()
        .doc("A Java class for SASL logins."),
    class("sasl.login.class").no_meaning().doc("A Java class that logs in."),
    int("sasl.login.connect.timeout.ms")
        .low()
        .doc("How long connecting to the identity provider may take."),
    int("sasl.login.read.timeout.ms")
        .low()
        .doc("How long reading from the identity provider may take."),
    short("sasl.login.refresh.buffer.seconds")
        .default("300")
        .per_broker()
        .doc("The least time left when a token is refreshed."),
    short("sasl.login.refresh.min.period.seconds")
        .default("60")
        .per_broker()
        .doc("The least time between two refreshes."),
    double("sasl.login.refresh.window.factor")
        .default("0.8")
        .per_broker()
        .doc("At what part of its life a token is refreshed."),
    double("sasl.login.refresh.window.jitter")
        .default("0.05")
        .per_broker()
        .doc("The random part of the refresh time."),
    long("sasl.login.retry.backoff.max.ms")
        .default("10000")
        .low()
        .doc("The longest wait between two tries to log in."),
    long("sasl.login.retry.backoff.ms")
        .default("100")
        .low()
        .doc("The first wait between two tries to log in."),
    string("sasl.mechanism.controller.protocol")
        .default("GSSAPI")
        .high()
        .doc("The SASL mechanism towards controllers."),
    string("sasl.mechanism.inter.broker.protocol")
        .default("GSSAPI")
        .per_broker()
        .doc("The SASL mechanism between brokers."),
    boolean("sasl.oauthbearer.allow.unverified.audience")
        .default("false")
        .doc("Whether a token's audience may go unchecked."),
    boolean("sasl.oauthbearer.allow.unverified.issuer")
        .default("false")
        .doc("Whether a token's issuer may go unchecked."),
    string("sasl.oauthbearer.assertion.algorithm")
        .default("RS256")
        .check(Check::OneOfIgnoringCase(&["ES256", "RS256"]))
        .doc("The algorithm that assertions are signed with."),
    string("sasl.oauthbearer.assertion.claim.aud").doc("The audience claim of assertions."),
    int("sasl.oauthbearer.assertion.claim.exp.seconds")
        .default("300")
        .between(0, 86_400)
        .low()
        .doc("How long an assertion is good."),
    string("sasl.oauthbearer.assertion.claim.iss").doc("The issuer claim of assertions."),
    boolean("sasl.oauthbearer.assertion.claim.jti.include")
        .default("false")
        .doc("Whether assertions bear an id."),
    int("sasl.oauthbearer.assertion.claim.nbf.seconds")
        .default("60")
        .between(0, 3600)
        .low()
        .doc("How long before now an assertion begins to be good."),
    string("sasl.oauthbearer.assertion.claim.sub").doc("The subject claim of assertions."),
    string("sasl.oauthbearer.assertion.file").doc("A file with a ready assertion."),
    string("sasl.oauthbearer.assertion.private.key.file").doc("The key that assertions are signed with."),
    password("sasl.oauthbearer.assertion.private.key.passphrase").doc("The passphrase of that key."),
    string("sasl.oauthbearer.assertion.template.file").doc("A file with an assertion's header and claims."),
    string("sasl.oauthbearer.client.credentials.client.id").doc("The client id at the identity provider."),
    password("sasl.oauthbearer.client.credentials.client.secret").doc("The client secret at the identity provider."),
    int("sasl.oauthbearer.clock.skew.seconds")
        .default("30")
        .low()
        .doc("How far clocks may differ when a token is checked."),
    list("sasl.oauthbearer.expected.audience")
        .default("")
        .check(Check::Entries)
        .high()
        .doc("Audiences of which a token must name one."),
    string("sasl.oauthbearer.expected.issuer")
        .high()
        .doc("The issuer that a token must name."),
    long("sasl.oauthbearer.jwks.endpoint.refresh.ms")
        .default("3600000")
        .low()
        .doc("The time between two fetches of signing keys."),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")
        .default("10000")
        .low()
        .doc("The longest wait before signing keys are fetched again."),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")
        .default("100")
        .low()
        .doc("The first wait before signing keys are fetched again."),
    string("sasl.oauthbearer.jwks.endpoint.url").doc("Where the signing keys of tokens are."),
    class("sasl.oauthbearer.jwt.retriever.class")
        .default("org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever")
        .no_meaning()
        .doc("A Java class that fetches tokens."),
    class("sasl.oauthbearer.jwt.validator.class")
        .default("org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator")
        .no_meaning()
        .doc("A Java class that checks tokens."),
    string("sasl.oauthbearer.scope").doc("The scope that a token is asked for."),
    string("sasl.oauthbearer.scope.claim.name")
        .default("scope")
        .low()
        .doc("The claim that holds the scope."),
    string("sasl.oauthbearer.sub.claim.name")
        .default("sub")
        .low()
        .doc("The claim that holds the subject."),
    string("sasl.oauthbearer.token.endpoint.url").doc("Where tokens are fetched."),
    class("sasl.server.callback.handler.class")
        .no_meaning()
        .doc("A Java class for SASL servers."),
    int("sasl.server.max.receive.size")
        .default("524288")
        .doc("The largest SASL message that is taken."),
    string("security.inter.broker.protocol")
        .default("PLAINTEXT")
        .check(Check::OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]))
        .in_effect()
        .doc("The protocol between brokers, if no listener is named for it."),
    string("security.providers")
        .low()
        .no_meaning()
        .doc("Java classes of security algorithms."),
    boolean("ssl.allow.dn.changes")
        .default("false")
        .low()
        .doc("Whether a new certificate may name another subject."),
    boolean("ssl.allow.san.changes")
        .default("false")
        .low()
        .doc("Whether a new certificate may lack alternative names of the old."),
    list("ssl.cipher.suites")
        .default("")
        .check(Check::Entries)
        .per_broker()
        .doc("The cipher suites that are offered; empty for the library's."),
    string("ssl.client.auth")
        .default("none")
        .check(Check::OneOf(&["required", "requested", "none"]))
        .per_broker()
        .doc("Whether clients must, may or need not show a certificate."),
    list("ssl.enabled.protocols")
        .default("TLSv1.2,TLSv1.3")
        .check(Check::Entries)
        .per_broker()
        .doc("The TLS versions that are spoken."),
    string("ssl.endpoint.identification.algorithm")
        .default("https")
        .low()
        .per_broker()
        .doc("How a server's name is checked against its certificate."),
    class("ssl.engine.factory.class")
        .low()
        .per_broker()
        .no_meaning()
        .doc("A Java class that makes TLS engines."),
    password("ssl.key.password")
        .per_broker()
        .doc("The password of the private key."),
    string("ssl.keymanager.algorithm")
        .default("SunX509")
        .per_broker()
        .no_meaning()
        .doc("A Java algorithm for key stores."),
    password("ssl.keystore.certificate.chain")
        .per_broker()
        .doc("The certificate chain itself, in PEM."),
    password("ssl.keystore.key")
        .per_broker()
        .doc("The private key itself, in PEM."),
    string("ssl.keystore.location")
        .per_broker()
        .doc("The file with key and certificates."),
    password("ssl.keystore.password")
        .per_broker()
        .doc("The password of that file."),
    string("ssl.keystore.type")
        .default("JKS")
        .per_broker()
        .doc("The format of that file."),
    string("ssl.principal.mapping.rules")
        .default("DEFAULT")
        .low()
        .doc("How a certificate's subject becomes a short name."),
    string("ssl.protocol")
        .default("TLSv1.3")
        .per_broker()
        .doc("The TLS version that contexts begin with."),
    string("ssl.provider")
        .per_broker()
        .no_meaning()
        .doc("A Java security provider."),
    string("ssl.secure.random.implementation")
        .low()
        .per_broker()
        .no_meaning()
        .doc("A Java source of random numbers."),
    string("ssl.trustmanager.algorithm")
        .default("PKIX")
        .per_broker()
        .no_meaning()
        .doc("A Java algorithm for trust stores."),
    password("ssl.truststore.certificates")
        .per_broker()
        .doc("The trusted certificates themselves, in PEM."),
    string("ssl.truststore.location")
        .per_broker()
        .doc("The file with trusted certificates."),
    password("ssl.truststore.password")
        .per_broker()
        .doc("The password of that file."),
    string("ssl.truststore.type")
        .default("JKS")
        .per_broker()
        .doc("The format of that file."),
];
