//! The windowed task against its rules: by a brute-force oracle, by worked examples, and against plugins that misbehave.

#[cfg(test)]
mod doubles;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod plugin_trouble;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod restoring;
#[cfg(test)]
mod worked_examples;
