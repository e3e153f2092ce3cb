//! Whether a processor could run as it is asked for, next to or after what is deployed.

use model::spelling;
use plugin::deployment::{
    CHANGELOG_SUFFIX, CONFIG_BYTES_MAX, CONFIG_ENTRIES_MAX, Deployment, EmitSpec, ProcessorName, WindowKind, WindowSpec,
};
use plugin::host::ModuleInfo;
use plugin::running::{Deployed, DeploymentError};
use plugin::{ModuleError, Parameter};
use streams::{Emit, Hopping, TaskOptions, Tumbling, WindowError, Windows};

/// What the names of the cluster's own topics begin with.
const INTERNAL_PREFIX: &str = "__";

pub(super) fn check(
    name: &ProcessorName,
    deployment: &Deployment,
    module: &ModuleInfo,
    deployed: &[Deployed],
) -> Result<(), DeploymentError> {
    if !module.world.aggregates() {
        let (wanted, got) = ("window-aggregator or keyed-aggregator", module.world);
        return Err(ModuleError::Kind { wanted, got }.into());
    }
    options(deployment).map_err(|error| field("window", error.to_string()))?;
    check_config(deployment, &module.descriptor.parameters)?;
    check_topics(name, deployment, deployed)?;
    match deployed.iter().find(|known| known.name == *name) {
        Some(known) => check_state(&known.deployment, deployment),
        None => Ok(()),
    }
}

/// What a task of the deployment is told about its windows.
pub(crate) fn options(deployment: &Deployment) -> Result<TaskOptions, WindowError> {
    let WindowSpec {
        kind,
        size_ms,
        advance_ms,
        grace_ms,
    } = deployment.window;
    let windows = match kind {
        WindowKind::Tumbling => Windows::Tumbling(Tumbling::new(size_ms)?),
        WindowKind::Hopping => Windows::Hopping(Hopping::new(size_ms, advance_ms.unwrap_or(size_ms))?),
    };
    let emit = match deployment.emit {
        EmitSpec::Update => Emit::Update,
        EmitSpec::Final => Emit::Final,
    };
    TaskOptions::new(windows, grace_ms, emit)
}

fn field(field: &'static str, reason: impl Into<String>) -> DeploymentError {
    let reason = reason.into();
    DeploymentError::Field { field, reason }
}

fn check_config(deployment: &Deployment, parameters: &[Parameter]) -> Result<(), DeploymentError> {
    let config = &deployment.config;
    let bytes: usize = config.iter().map(|(name, value)| name.len() + value.len()).sum();
    if config.len() > CONFIG_ENTRIES_MAX || bytes > CONFIG_BYTES_MAX {
        let got = format!("{} entries of {bytes} bytes", config.len());
        let reason =
            format!("{got}; at most {CONFIG_ENTRIES_MAX} entries of {CONFIG_BYTES_MAX} bytes in all are taken");
        return Err(field("config", reason));
    }
    for name in config.keys() {
        if !parameters.iter().any(|parameter| parameter.name == *name) {
            return Err(field("config", unknown(name, parameters)));
        }
    }
    let missing = parameters
        .iter()
        .find(|parameter| parameter.required && parameter.fallback.is_none() && !config.contains_key(&parameter.name));
    match missing {
        Some(parameter) => Err(field(
            "config",
            format!("the module needs `{}`: {}", parameter.name, parameter.doc),
        )),
        None => Ok(()),
    }
}

fn unknown(name: &str, parameters: &[Parameter]) -> String {
    let nearest = parameters
        .iter()
        .filter_map(|parameter| Some((spelling::distance(name, &parameter.name)?, &parameter.name)))
        .min();
    let near = nearest.filter(|(distance, known)| *distance <= known.len().div_ceil(3));
    match near {
        Some((_, known)) => format!("the module knows no `{name}`; did you mean `{known}`?"),
        None if parameters.is_empty() => format!("the module knows no `{name}`: it takes no configuration"),
        None => {
            let names: Vec<_> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
            format!("the module knows no `{name}`; it takes {}", names.join(", "))
        }
    }
}

fn check_topics(name: &ProcessorName, deployment: &Deployment, deployed: &[Deployed]) -> Result<(), DeploymentError> {
    let Deployment { input, output, .. } = deployment;
    if input == output {
        return Err(field("output", "a processor cannot write to the topic that it reads"));
    }
    let own = [name.changelog_topic(), name.dead_letter_topic()];
    if own.contains(input) {
        return Err(field("input", "the processor itself writes to this topic"));
    }
    if own.contains(output) {
        return Err(field("output", "the processor keeps this topic for itself"));
    }
    if output.as_str().starts_with(INTERNAL_PREFIX) {
        return Err(field("output", "this is a topic of the cluster's own"));
    }
    let others = deployed.iter().filter(|other| other.name != *name);
    for Deployed {
        name: other,
        deployment: known,
        ..
    } in others
    {
        if *output == other.changelog_topic() {
            return Err(field(
                "output",
                format!("processor {other} keeps its state in this topic"),
            ));
        }
        if known.input == name.changelog_topic() {
            let reason = format!("processor {other} reads {name}{CHANGELOG_SUFFIX}, where the state would be kept");
            return Err(field("name", reason));
        }
        if known.output == name.changelog_topic() {
            let reason = format!("processor {other} writes to {name}{CHANGELOG_SUFFIX}, where the state would be kept");
            return Err(field("name", reason));
        }
    }
    Ok(())
}

/// The state is kept by partition of the input, and in windows.
fn check_state(known: &Deployment, deployment: &Deployment) -> Result<(), DeploymentError> {
    let changed = [
        ("input", known.input != deployment.input),
        ("window", known.window != deployment.window),
        ("emit", known.emit != deployment.emit),
    ];
    match changed.iter().find(|(_, changed)| *changed) {
        Some((what, _)) => Err(DeploymentError::OrphansState(format!(
            "`{what}` differs from what is deployed, whose state could not be gone on from"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Timestamp, TopicName};
    use plugin::deployment::From;
    use plugin::{Descriptor, Digest, World};

    fn module(world: World) -> ModuleInfo {
        let parameter = |name: &str, required| Parameter {
            name: name.to_owned(),
            doc: format!("the {name}"),
            fallback: None,
            required,
            secret: false,
        };
        ModuleInfo {
            digest: Digest::new([1; 32]),
            size_bytes: 1,
            world,
            descriptor: Descriptor {
                parameters: vec![parameter("aggregate", true), parameter("value_field", false)],
                ..Descriptor::default()
            },
        }
    }

    fn deployment() -> Deployment {
        Deployment {
            version: 1,
            module: Digest::new([1; 32]),
            input: TopicName::new("in").unwrap(),
            from: From::Earliest,
            output: TopicName::new("out").unwrap(),
            window: WindowSpec {
                kind: WindowKind::Hopping,
                size_ms: 60_000,
                advance_ms: Some(30_000),
                grace_ms: 0,
            },
            emit: EmitSpec::Update,
            config: [("aggregate".to_owned(), "count".to_owned())].into(),
            paused: false,
        }
    }

    fn deployed(name: &str, deployment: Deployment) -> Deployed {
        Deployed {
            name: ProcessorName::new(name).unwrap(),
            deployment: deployment.into(),
            since: Timestamp::from_millis(0),
        }
    }

    /// What is said of the deployment after `change`, next to the unchanged one under the name `a`.
    fn verdict(name: &str, change: impl FnOnce(&mut Deployment)) -> String {
        let mut changed = deployment();
        change(&mut changed);
        let name = ProcessorName::new(name).unwrap();
        let others = [deployed("a", deployment())];
        let checked = check(&name, &changed, &module(World::KeyedAggregator), &others);
        checked.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    fn topic(name: &str) -> TopicName {
        TopicName::new(name).unwrap()
    }

    #[test]
    fn what_can_run_is_let_through() {
        assert_eq!(verdict("b", |_| {}), "fine");
        let anew = |deployment: &mut Deployment| {
            deployment.version = 2;
            deployment.output = topic("elsewhere");
            deployment.config.insert("value_field".into(), "delay".into());
        };
        assert_eq!(verdict("a", anew), "fine");
    }

    #[test]
    fn only_aggregators_are_processors() {
        let name = ProcessorName::new("a").unwrap();
        let refused = check(&name, &deployment(), &module(World::Serde), &[]).unwrap_err();
        assert!(refused.to_string().contains("the module is a serde"), "{refused}");
    }

    #[test]
    fn windows_that_cannot_be_are_refused() {
        let refused = verdict("b", |deployment| deployment.window.advance_ms = Some(60_001));
        assert!(refused.starts_with("`window`: an advance of 60001 ms"), "{refused}");
        let refused = verdict("b", |deployment| deployment.window.grace_ms = -1);
        assert!(refused.starts_with("`window`: a grace of -1 ms"), "{refused}");
    }

    #[test]
    fn the_configuration_is_held_to_what_the_module_says() {
        let refused = verdict("b", |deployment| deployment.config.clear());
        assert_eq!(refused, "`config`: the module needs `aggregate`: the aggregate");
        let set = |name: &'static str| {
            move |deployment: &mut Deployment| {
                deployment.config.insert(name.into(), "x".into());
            }
        };
        let refused = verdict("b", set("value_feild"));
        assert_eq!(
            refused,
            "`config`: the module knows no `value_feild`; did you mean `value_field`?"
        );
        let refused = verdict("b", set("quorum"));
        assert_eq!(
            refused,
            "`config`: the module knows no `quorum`; it takes aggregate, value_field"
        );
        let much = |deployment: &mut Deployment| {
            deployment
                .config
                .insert("value_field".into(), "x".repeat(CONFIG_BYTES_MAX));
        };
        assert!(verdict("b", much).contains("at most 256 entries of 65536 bytes"));
    }

    #[test]
    fn topics_that_would_be_mixed_up_are_refused() {
        let out = |name: &'static str| move |deployment: &mut Deployment| deployment.output = topic(name);
        for (name, output, why) in [
            ("b", "in", "cannot write to the topic that it reads"),
            ("b", "b-changelog", "keeps this topic for itself"),
            ("b", "b-dead-letter", "keeps this topic for itself"),
            ("b", "a-changelog", "processor a keeps its state in this topic"),
            ("b", "__consumer_offsets", "the cluster's own"),
        ] {
            let refused = verdict(name, out(output));
            assert!(refused.contains(why), "{output}: {refused}");
        }
        let refused = verdict("b", |deployment| deployment.input = topic("b-dead-letter"));
        assert!(refused.starts_with("`input`"), "{refused}");
    }

    #[test]
    fn what_would_orphan_state_is_refused() {
        type Change = fn(&mut Deployment);
        let changes: [(&str, Change); 4] = [
            ("input", |deployment| deployment.input = topic("other")),
            ("window", |deployment| deployment.window.size_ms = 90_000),
            ("window", |deployment| deployment.window.grace_ms = 1),
            ("emit", |deployment| deployment.emit = EmitSpec::Final),
        ];
        for (what, change) in changes {
            let refused = verdict("a", change);
            assert!(refused.starts_with(&format!("`{what}` differs")), "{refused}");
            assert_eq!(verdict("b", change), "fine");
        }
    }
}
