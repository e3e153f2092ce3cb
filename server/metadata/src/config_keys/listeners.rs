//! `listeners`, `advertised.listeners` and what belongs to them: which sockets a node opens, how each is secured, and
//! which addresses it tells others (KIP-103, KIP-500).

use super::error::ConfigError;
use super::layers::BrokerValues;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl SecurityProtocol {
    /// The number in metadata records and responses.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            SecurityProtocol::Plaintext => 0,
            SecurityProtocol::Ssl => 1,
            SecurityProtocol::SaslPlaintext => 2,
            SecurityProtocol::SaslSsl => 3,
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let known = [
            ("PLAINTEXT", SecurityProtocol::Plaintext),
            ("SSL", SecurityProtocol::Ssl),
            ("SASL_PLAINTEXT", SecurityProtocol::SaslPlaintext),
            ("SASL_SSL", SecurityProtocol::SaslSsl),
        ];
        let found = known.iter().find(|(each, _)| each.eq_ignore_ascii_case(name));
        found.map(|(_, protocol)| *protocol)
    }
}

/// A host and a port. IPv6 addresses are written in brackets and kept without.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl Address {
    /// `None` unless `text` is `host:port` with a host.
    #[must_use]
    pub fn parse(text: &str) -> Option<Address> {
        let address = Self::parse_with_any_host(text)?;
        if address.host.is_empty() { None } else { Some(address) }
    }

    /// The host may be empty, which stands for all interfaces.
    fn parse_with_any_host(text: &str) -> Option<Address> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']')?,
            None if host.contains(':') => return None,
            None => host,
        };
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
        if host.bytes().all(allowed) {
            Some(Address {
                host: host.to_owned(),
                port,
            })
        } else {
            None
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// An entry of `listeners`: a socket to open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    /// In capitals, as Kafka keeps it.
    pub name: String,
    pub protocol: SecurityProtocol,
    /// `None` for all interfaces.
    pub host: Option<String>,
    /// 0 lets the system choose.
    pub port: u16,
}

/// An entry of `advertised.listeners`: where others reach a listener.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    pub name: String,
    pub protocol: SecurityProtocol,
    pub address: Address,
}

/// All listeners of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListenerSettings {
    /// The sockets of the broker role; none on a pure controller.
    pub broker: Vec<Listener>,
    /// The sockets of the controller role; none on a pure broker.
    pub controller: Vec<Listener>,
    /// What the broker registers. Without `advertised.listeners` it is what it listens on. An empty host stands for the
    /// machine's name, which the binary puts in its place.
    pub advertised: Vec<Endpoint>,
    /// What the controller registers, by the same rules.
    pub advertised_controller: Vec<Endpoint>,
    /// By which of `broker` the brokers speak to each other.
    pub inter_broker_name: String,
    pub inter_broker_protocol: SecurityProtocol,
    /// By which listeners of the controllers they are reached, the first for brokers.
    pub controller_names: Vec<String>,
    /// The protocol of the first of `controller_names`, also where it is another node's.
    pub controller_protocol: SecurityProtocol,
    pub early_start_names: Vec<String>,
}

/// A voter of `controller.quorum.voters`: id and address.
pub(super) fn parse_voter(text: &str) -> Option<(i32, Address)> {
    let (id, address) = text.split_once('@')?;
    let id: i32 = id.parse().ok()?;
    if id < 0 {
        return None;
    }
    Address::parse(address).map(|address| (id, address))
}

type ProtocolMap = BTreeMap<String, SecurityProtocol>;

impl ListenerSettings {
    /// # Errors
    /// If an entry is not written as `NAME://host:port`, a name has no protocol, or the rules between the keys fail.
    pub(super) fn read(values: &BrokerValues, is_broker: bool, is_controller: bool) -> Result<Self, ConfigError> {
        let controller_names = uppercase(values.list("controller.listener.names")?);
        let entries = values.list("listeners")?;
        let protocols = protocol_map(values, &controller_names, &entries)?;
        let listeners = parse_listeners("listeners", &entries, &protocols)?;
        check_distinct(&listeners)?;
        let (controller, broker): (Vec<Listener>, Vec<Listener>) = listeners
            .into_iter()
            .partition(|listener| controller_names.contains(&listener.name));
        check_roles(&broker, &controller, &controller_names, is_broker, is_controller)?;
        let inter_broker = inter_broker(values, &protocols, is_broker)?;
        let (inter_broker_name, inter_broker_protocol) = inter_broker;
        let stated = values.list("advertised.listeners")?;
        let stated = parse_listeners("advertised.listeners", &stated, &protocols)?;
        let advertised_broker = advertised(&broker, &stated, !stated.is_empty());
        if is_broker {
            check_advertised(&stated, &advertised_broker, &broker, &controller, &inter_broker_name)?;
        }
        let early_start_names = uppercase(values.list("early.start.listeners")?);
        for name in &early_start_names {
            if !broker.iter().any(|each| each.name == *name) && !controller_names.contains(name) {
                return Err(rule(format!(
                    "early.start.listeners contains {name}, which is not in listeners"
                )));
            }
        }
        let first = controller_names.first().cloned().unwrap_or_default();
        let controller_protocol = protocols.get(&first).copied().ok_or_else(|| no_protocol(&first))?;
        Ok(ListenerSettings {
            advertised: advertised_broker,
            advertised_controller: advertised(&controller, &stated, false),
            broker,
            controller,
            inter_broker_name,
            inter_broker_protocol,
            controller_names,
            controller_protocol,
            early_start_names,
        })
    }
}

fn rule(message: String) -> ConfigError {
    ConfigError::plain(message)
}

fn no_protocol(name: &str) -> ConfigError {
    rule(format!(
        "No security protocol defined for listener {name}: add it to listener.security.protocol.map"
    ))
}

fn uppercase(names: Vec<String>) -> Vec<String> {
    names.into_iter().map(|name| name.to_ascii_uppercase()).collect()
}

/// `NAME:PROTOCOL` pairs. With the key unset controllers' listeners are plaintext, unless a listener is named after one
/// of the protocols that protect: then plaintext must be asked for.
fn protocol_map(
    values: &BrokerValues,
    controller_names: &[String],
    entries: &[String],
) -> Result<ProtocolMap, ConfigError> {
    let key = "listener.security.protocol.map";
    let text = values.text(key)?.unwrap_or_default();
    let mut map = ProtocolMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let protocol = pair
            .rsplit_once(':')
            .and_then(|(name, protocol)| Some((name.trim(), SecurityProtocol::from_name(protocol.trim())?)));
        let Some((name, protocol)) = protocol.filter(|(name, _)| !name.is_empty()) else {
            return Err(ConfigError::invalid(
                key,
                &text,
                format!("{pair} is not LISTENER:PROTOCOL"),
            ));
        };
        map.insert(name.to_ascii_uppercase(), protocol);
    }
    let named = entries
        .iter()
        .filter_map(|entry| entry.split_once("://"))
        .map(|(name, _)| name);
    let protects = |name: &str| {
        !matches!(
            SecurityProtocol::from_name(name),
            None | Some(SecurityProtocol::Plaintext)
        )
    };
    let any_protects = controller_names.iter().map(String::as_str).chain(named).any(protects);
    if !values.texts().contains_key(key) && !any_protects {
        for name in controller_names {
            map.entry(name.clone()).or_insert(SecurityProtocol::Plaintext);
        }
    }
    Ok(map)
}

fn parse_listeners(key: &str, entries: &[String], map: &ProtocolMap) -> Result<Vec<Listener>, ConfigError> {
    entries
        .iter()
        .map(|entry| {
            let malformed = || ConfigError::invalid(key, entry, "a listener is written as NAME://host:port".to_owned());
            let (name, address) = entry.split_once("://").ok_or_else(malformed)?;
            let address = Address::parse_with_any_host(address).ok_or_else(malformed)?;
            let name = name.to_ascii_uppercase();
            let protocol = map.get(&name).copied().ok_or_else(|| no_protocol(&name))?;
            let host = Some(address.host).filter(|host| !host.is_empty());
            Ok(Listener {
                name,
                protocol,
                host,
                port: address.port,
            })
        })
        .collect()
}

/// Names are distinct, and so are addresses but for port 0. One port may serve an IPv4 and an IPv6 address.
fn check_distinct(listeners: &[Listener]) -> Result<(), ConfigError> {
    for (at, listener) in listeners.iter().enumerate() {
        for other in &listeners[..at] {
            if listener.name == other.name {
                return Err(rule(format!(
                    "Each listener must have a different name, {} is there twice",
                    other.name
                )));
            }
            let families = [listener, other].map(|each| each.host.as_deref().map(|host| host.contains(':')));
            let differ = matches!(families, [Some(one), Some(two)] if one != two) || listener.host != other.host;
            if listener.port != 0 && listener.port == other.port && !differ {
                return Err(rule(format!(
                    "Each listener must have a different port, {} and {} share {}",
                    other.name, listener.name, listener.port
                )));
            }
        }
    }
    Ok(())
}

fn check_roles(
    broker: &[Listener],
    controller: &[Listener],
    controller_names: &[String],
    is_broker: bool,
    is_controller: bool,
) -> Result<(), ConfigError> {
    if controller_names.is_empty() {
        return Err(rule(
            "controller.listener.names must contain at least one name".to_owned(),
        ));
    }
    let is_there = |name: &String| controller.iter().any(|listener| listener.name == *name);
    if is_controller && !controller.is_empty() && !controller_names.iter().all(is_there) {
        return Err(rule(
            "controller.listener.names must only have names of listeners where process.roles has controller".to_owned(),
        ));
    }
    if is_controller && controller.is_empty() {
        return Err(rule(format!(
            "a controller needs a listener of controller.listener.names ({}) in listeners",
            controller_names.join(",")
        )));
    }
    if !is_controller && !controller.is_empty() {
        return Err(rule(
            "a listener of controller.listener.names may stand in listeners only if process.roles has controller"
                .to_owned(),
        ));
    }
    if is_broker && broker.is_empty() {
        return Err(rule(
            "There must be at least one broker listener in listeners".to_owned(),
        ));
    }
    if !is_broker && !broker.is_empty() {
        return Err(rule(
            "listeners of a pure controller must all be in controller.listener.names".to_owned(),
        ));
    }
    Ok(())
}

/// Name and protocol by which brokers speak to each other.
fn inter_broker(
    values: &BrokerValues,
    protocols: &ProtocolMap,
    is_broker: bool,
) -> Result<(String, SecurityProtocol), ConfigError> {
    let by_protocol = values.text("security.inter.broker.protocol")?.unwrap_or_default();
    match values.text("inter.broker.listener.name")? {
        Some(_) if values.texts().contains_key("security.inter.broker.protocol") => Err(rule(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.".to_owned(),
        )),
        Some(name) => {
            let name = name.to_ascii_uppercase();
            let protocol = protocols.get(&name).copied();
            match protocol {
                Some(protocol) => Ok((name, protocol)),
                None if is_broker => Err(no_protocol(&name)),
                None => Ok((name, SecurityProtocol::Plaintext)),
            }
        }
        None => {
            let protocol = SecurityProtocol::from_name(&by_protocol).unwrap_or(SecurityProtocol::Plaintext);
            Ok((by_protocol.to_ascii_uppercase(), protocol))
        }
    }
}

/// What others are told: only listeners that there are, at least one, with addresses that lead somewhere, and the one
/// that the brokers speak by.
fn check_advertised(
    stated: &[Listener],
    advertised: &[Endpoint],
    broker: &[Listener],
    controller: &[Listener],
    inter_broker_name: &str,
) -> Result<(), ConfigError> {
    let exists = |name: &str| broker.iter().chain(controller).any(|each| each.name == name);
    if let Some(listener) = stated.iter().find(|listener| !exists(&listener.name)) {
        return Err(rule(format!(
            "advertised.listeners has {}, which is not in listeners",
            listener.name
        )));
    }
    if advertised.is_empty() {
        return Err(rule(
            "There must be at least one broker advertised listener. Perhaps all listeners appear in \
             controller.listener.names?"
                .to_owned(),
        ));
    }
    if advertised.iter().any(|endpoint| endpoint.address.host == "0.0.0.0") {
        return Err(rule(
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
                .to_owned(),
        ));
    }
    if !advertised.iter().any(|endpoint| endpoint.name == inter_broker_name) {
        let names: Vec<&str> = advertised.iter().map(|endpoint| endpoint.name.as_str()).collect();
        return Err(rule(format!(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options \
             based on currently configured listeners are {}",
            names.join(",")
        )));
    }
    Ok(())
}

/// With `only_stated`, listeners without an entry are not advertised.
fn advertised(listeners: &[Listener], stated: &[Listener], only_stated: bool) -> Vec<Endpoint> {
    let endpoint = |listener: &Listener| {
        let host = listener.host.clone();
        Endpoint {
            name: listener.name.clone(),
            protocol: listener.protocol,
            address: Address {
                host: host.unwrap_or_default(),
                port: listener.port,
            },
        }
    };
    listeners
        .iter()
        .filter_map(|listener| match stated.iter().find(|each| each.name == listener.name) {
            Some(stated) => Some(endpoint(stated)),
            None if only_stated => None,
            None => Some(endpoint(listener)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::BrokerConfigs;
    use super::*;
    use proptest::prelude::*;

    fn read(lines: &str, is_broker: bool, is_controller: bool) -> Result<ListenerSettings, String> {
        let mut configs = BrokerConfigs::default();
        for line in lines.split('|') {
            let (name, value) = line.split_once('=').expect("a pair");
            configs.static_values.insert(name.to_owned(), value.to_owned());
        }
        ListenerSettings::read(&configs.values(), is_broker, is_controller).map_err(|error| error.to_string())
    }

    #[test]
    fn a_combined_node_has_listeners_of_both_kinds() {
        let settings = read(
            "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093|controller.listener.names=controller",
            true,
            true,
        )
        .expect("valid");
        assert_eq!(settings.broker.len(), 1);
        assert_eq!(settings.controller[0].name, "CONTROLLER");
        assert_eq!(settings.controller[0].protocol, SecurityProtocol::Plaintext);
        assert_eq!(settings.inter_broker_name, "PLAINTEXT");
        assert_eq!(settings.advertised[0].address.to_string(), "127.0.0.1:9092");
    }

    #[test]
    fn names_are_mapped_to_protocols() {
        let settings = read(
            "listeners=INTERNAL://:9092,EXTERNAL://[::1]:9094|controller.listener.names=C|\
             listener.security.protocol.map=internal:PLAINTEXT,EXTERNAL:SASL_SSL,C:SSL|\
             inter.broker.listener.name=INTERNAL|advertised.listeners=INTERNAL://a.example:1,EXTERNAL://b.example:2",
            true,
            false,
        )
        .expect("valid");
        assert_eq!(settings.broker[0].host, None);
        assert_eq!(settings.broker[1].host.as_deref(), Some("::1"));
        assert_eq!(settings.broker[1].protocol, SecurityProtocol::SaslSsl);
        assert_eq!(settings.controller_protocol, SecurityProtocol::Ssl);
        assert_eq!(settings.advertised[1].address.to_string(), "b.example:2");
    }

    #[test]
    fn what_does_not_fit_together_is_refused_with_its_reason() {
        for (lines, roles, reason) in [
            (
                "listeners=PLAINTEXT://:1,SSL://:1|controller.listener.names=C",
                (true, false),
                "different port",
            ),
            (
                "listeners=PLAINTEXT://:1,PLAINTEXT://:2|controller.listener.names=C",
                (true, false),
                "different name",
            ),
            (
                "listeners=FOO://:1|controller.listener.names=C",
                (true, false),
                "No security protocol defined",
            ),
            (
                "listeners=PLAINTEXT:1|controller.listener.names=C",
                (true, false),
                "NAME://host:port",
            ),
            (
                "listeners=PLAINTEXT://:1|controller.listener.names=C",
                (true, true),
                "a controller needs a listener",
            ),
            (
                "listeners=C://:1|controller.listener.names=C",
                (true, true),
                "at least one broker listener",
            ),
            (
                "listeners=SSL://:1|controller.listener.names=C|listener.security.protocol.map=SSL:SSL,C:SSL",
                (true, false),
                "must be a listener name defined in advertised.listeners",
            ),
            (
                "listeners=PLAINTEXT://:1|controller.listener.names=C|advertised.listeners=PLAINTEXT://0.0.0.0:1",
                (true, false),
                "0.0.0.0",
            ),
            (
                "listeners=PLAINTEXT://:1|controller.listener.names=C|advertised.listeners=SSL://h:1",
                (true, false),
                "not in listeners",
            ),
        ] {
            let error = read(lines, roles.0, roles.1).expect_err(lines);
            assert!(error.contains(reason), "{lines}: {error}");
        }
    }

    #[test]
    fn one_port_serves_both_families() {
        let lines = "listeners=PLAINTEXT://127.0.0.1:9092,A://[::1]:9092|controller.listener.names=C|\
                     listener.security.protocol.map=PLAINTEXT:PLAINTEXT,A:PLAINTEXT,C:PLAINTEXT";
        assert!(read(lines, true, false).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_or_refused(text: String) {
            if let Some(address) = Address::parse(&text) {
                prop_assert_eq!(Address::parse(&address.to_string()), Some(address));
            }
        }
    }
}
