//! What a processor is asked to be, read field by field.

use plugin::Digest;
use plugin::deployment::{Deployment, EmitSpec, From, WindowKind, WindowSpec};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::fields::{config, optional, parsed, required};
use crate::problem::Problem;

/// A processor to be deployed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessorSpec<'a> {
    /// The SHA-256 of a module that aggregates windows.
    #[serde(borrow, default)]
    #[schema(value_type = String, required)]
    module: Option<&'a RawValue>,
    /// The topic that is read.
    #[serde(borrow, default)]
    #[schema(value_type = String, required)]
    input: Option<&'a RawValue>,
    /// Where a new processor begins to read: `earliest`, `latest`, `offset:N` or `time:MS`.
    #[serde(borrow, default)]
    #[schema(value_type = String, required, pattern = "^(earliest|latest|offset:[0-9]+|time:[0-9]+)$")]
    from: Option<&'a RawValue>,
    /// The topic of the results; created with as many partitions as the input, unless it is there.
    #[serde(borrow, default)]
    #[schema(value_type = String, required)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    #[schema(value_type = ProcessorWindow, required)]
    window: Option<&'a RawValue>,
    /// `update`: a result after each row; `final`: one when the window has closed.
    #[serde(borrow, default)]
    #[schema(value_type = Emit, required)]
    emit: Option<&'a RawValue>,
    /// What the module is set to, by the names of its parameters.
    #[serde(borrow, default)]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    config: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowFields<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    size_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    advance_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    grace_ms: Option<&'a RawValue>,
}

/// How event time is cut into windows.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProcessorWindow {
    #[serde(rename = "type")]
    kind: WindowType,
    #[schema(minimum = 1)]
    size_ms: i64,
    /// How far apart the starts of windows are; for hopping windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    advance_ms: Option<i64>,
    /// How long after its end a window still takes rows.
    #[schema(minimum = 0)]
    grace_ms: i64,
}

/// `tumbling`: end to end; `hopping`: overlapping.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WindowType {
    Tumbling,
    Hopping,
}

/// When windows give results.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Emit {
    Update,
    Final,
}

impl ProcessorSpec<'_> {
    /// The deployment, as a first version that runs.
    pub(super) fn read(&self) -> Result<Deployment, Problem> {
        let module: String = required("module", self.module)?;
        let module: Digest = parsed("module", module.parse())?;
        let topic = |name, written| {
            let text: String = required(name, written)?;
            parsed(name, model::TopicName::new(&text))
        };
        let input = topic("input", self.input)?;
        let from: String = required("from", self.from)?;
        let from: From = parsed("from", from.parse())?;
        let output = topic("output", self.output)?;
        // Serde would take the members of a list in their order.
        if self.window.is_some_and(|window| window.get().starts_with('[')) {
            return Err(Problem::field("window", "it is an object"));
        }
        let window: WindowFields<'_> = required("window", self.window)?;
        let deployment = Deployment {
            version: 1,
            module,
            input,
            from,
            output,
            window: window.read()?,
            emit: emit(self.emit)?,
            config: config(self.config)?,
            paused: false,
        };
        if deployment.output.as_str().starts_with("__") {
            return Err(Problem::field(
                "output",
                "topics that begin with __ are the cluster's own",
            ));
        }
        if deployment.output == deployment.input {
            return Err(Problem::field("output", "it is the input, too"));
        }
        Ok(deployment)
    }
}

fn emit(written: Option<&RawValue>) -> Result<EmitSpec, Problem> {
    let text: String = required("emit", written)?;
    match text.as_str() {
        "update" => Ok(EmitSpec::Update),
        "final" => Ok(EmitSpec::Final),
        _ => Err(Problem::field("emit", "it is update or final")),
    }
}

impl WindowFields<'_> {
    fn read(&self) -> Result<WindowSpec, Problem> {
        let kind: String = required("window.type", self.kind)?;
        let kind = match kind.as_str() {
            "tumbling" => WindowKind::Tumbling,
            "hopping" => WindowKind::Hopping,
            _ => return Err(Problem::field("window.type", "it is tumbling or hopping")),
        };
        let size_ms: i64 = required("window.size_ms", self.size_ms)?;
        if size_ms < 1 {
            return Err(Problem::field("window.size_ms", "it is 1 at least"));
        }
        let advance_ms: Option<i64> = optional("window.advance_ms", self.advance_ms)?;
        let advance_ms = match (kind, advance_ms) {
            (WindowKind::Tumbling, Some(advance)) if advance != size_ms => {
                return Err(Problem::field(
                    "window.advance_ms",
                    "tumbling windows advance by their size",
                ));
            }
            (WindowKind::Tumbling, _) => None,
            (WindowKind::Hopping, None) => {
                return Err(Problem::field("window.advance_ms", "hopping windows need it"));
            }
            (WindowKind::Hopping, Some(advance)) if !(1..=size_ms).contains(&advance) => {
                return Err(Problem::field("window.advance_ms", "it is from 1 to the window's size"));
            }
            (WindowKind::Hopping, advance) => advance,
        };
        let grace_ms: i64 = required("window.grace_ms", self.grace_ms)?;
        if grace_ms < 0 {
            return Err(Problem::field("window.grace_ms", "it is 0 at least"));
        }
        Ok(WindowSpec {
            kind,
            size_ms,
            advance_ms,
            grace_ms,
        })
    }
}

impl ProcessorWindow {
    pub(super) fn show(window: &WindowSpec) -> Self {
        ProcessorWindow {
            kind: match window.kind {
                WindowKind::Tumbling => WindowType::Tumbling,
                WindowKind::Hopping => WindowType::Hopping,
            },
            size_ms: window.size_ms,
            advance_ms: window.advance_ms,
            grace_ms: window.grace_ms,
        }
    }
}

impl Emit {
    pub(super) fn show(emit: EmitSpec) -> Self {
        match emit {
            EmitSpec::Update => Emit::Update,
            EmitSpec::Final => Emit::Final,
        }
    }
}
