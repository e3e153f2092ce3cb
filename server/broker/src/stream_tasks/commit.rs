//! Carries out a commit: results and dead letters to their topics, and when all of them are there the changelog batch.
//!
//! A result that its topic will never take (too large, invalid) becomes a dead letter, so that it cannot hold up its
//! partition for ever. A dead letter that its topic will never take loses its content, and at last itself, which is
//! logged. Whatever else goes wrong may pass: the task is restored and does the step again.

use client::{Outcome, ProduceRecord, RecordError};
use model::{ErrorCode, Offset, PartitionIndex, TopicName};
use plugin::logs::Level;
use streams::{ChangelogRecord, Commit, DeadLetterSource, Refusal, Refused, ResultRow};

use super::changelog;
use super::dead_letters::{self, own_headers};
use super::run::{Halt, Job};
use crate::errors::describe;

/// How many refused rows of one commit are logged one by one.
const REFUSALS_LOGGED_MAX: usize = 10;
/// How often a dead letter is made smaller before it is given up.
const LETTER_ATTEMPTS_MAX: usize = 3;

/// What came of a commit.
pub(super) struct Committed {
    /// The changelog's end.
    pub(super) end: Offset,
    /// Results that their topic refused.
    pub(super) refused: u64,
}

impl Job {
    pub(super) async fn carry_out(&self, commit: Commit) -> Result<Committed, Halt> {
        let Commit {
            results,
            dead_letters,
            refusals,
            changelog,
            ..
        } = commit;
        let sender = self.sender();
        let mut letters: Vec<ProduceRecord> = dead_letters.iter().map(|letter| sender.letter(letter)).collect();
        for letter in &dead_letters {
            let fields = match letter.source {
                DeadLetterSource::Row(offset) => vec![("offset".to_owned(), offset.to_string())],
                DeadLetterSource::Window(window) => vec![("window".to_owned(), window.start.millis().to_string())],
            };
            self.log(Level::Warn, format!("dead letter: {}", letter.reason), fields);
        }
        let before = letters.len();
        self.deliver(results, &mut letters).await?;
        let refused = letters.len() - before;
        self.deliver_letters(letters).await?;
        let end = self.append(&changelog).await?;
        self.log_refusals(&refusals);
        Ok(Committed {
            end,
            refused: refused as u64,
        })
    }

    /// Appends to the changelog as one batch.
    pub(super) async fn append(&self, records: &[ChangelogRecord]) -> Result<Offset, Halt> {
        let parts = &self.parts;
        let now = parts.broker.clock().now();
        let appended = changelog::append(&parts.client, &parts.context, &self.changelog, self.ids, now, records);
        appended.await.map_err(|error| Halt::Again(describe(&error)))
    }

    /// Results to their topic; those that it will never take become letters.
    async fn deliver(&self, results: Vec<ResultRow>, letters: &mut Vec<ProduceRecord>) -> Result<(), Halt> {
        if results.is_empty() {
            return Ok(());
        }
        let sender = self.sender();
        let output = &self.deployment.output;
        let partitions = self.partitions(output).await?;
        let fits = |result: &ResultRow| result.partition.is_none_or(|partition| partition.get() < partitions);
        let (results, astray): (Vec<_>, Vec<_>) = results.into_iter().partition(fits);
        for result in astray {
            let partition = result.partition.map_or(-1, PartitionIndex::get);
            let reason = format!("topic {output} has no partition {partition}");
            letters.push(self.refuse(&sender, &result, &reason));
        }
        let records = results.iter().map(record).collect();
        for (outcome, result) in self.send(output, records).await?.into_iter().zip(&results) {
            let Err(error) = outcome else { continue };
            if !is_records_own(&error) {
                return Err(Halt::Again(format!("writing to {output}: {error}")));
            }
            letters.push(self.refuse(&sender, result, &format!("topic {output} does not take it: {error}")));
        }
        Ok(())
    }

    fn refuse(&self, sender: &dead_letters::Sender, result: &ResultRow, reason: &str) -> ProduceRecord {
        self.log(Level::Warn, format!("dead letter: {reason}"), Vec::new());
        sender.refused_result(result, reason)
    }

    async fn deliver_letters(&self, mut letters: Vec<ProduceRecord>) -> Result<(), Halt> {
        let topic = self.name.dead_letter_topic();
        for _ in 0..LETTER_ATTEMPTS_MAX {
            if letters.is_empty() {
                return Ok(());
            }
            let partitions = self.partitions(&topic).await?;
            let partition = self.partition().get().checked_rem(partitions).unwrap_or(0);
            for letter in &mut letters {
                letter.partition = Some(PartitionIndex::new(partition));
            }
            let outcomes = self.send(&topic, letters.clone()).await?;
            let mut again = Vec::new();
            for (outcome, letter) in outcomes.into_iter().zip(letters) {
                match outcome {
                    Ok(_) => {}
                    Err(error) if is_records_own(&error) => again.push(dead_letters::reduced(letter, error.code)),
                    Err(error) => return Err(Halt::Again(format!("writing to {topic}: {error}"))),
                }
            }
            letters = again;
        }
        for letter in letters {
            let fields = dead_letters::fields(&letter);
            self.log(
                Level::Error,
                format!("topic {topic} does not take a dead letter, which is lost"),
                fields,
            );
        }
        Ok(())
    }

    async fn send(&self, topic: &TopicName, records: Vec<ProduceRecord>) -> Result<Vec<Outcome>, Halt> {
        let sent = self.parts.producer.send(topic, records).await;
        sent.map_err(|error| Halt::Again(format!("writing to {topic}: {}", describe(&error))))
    }

    async fn partitions(&self, topic: &TopicName) -> Result<i32, Halt> {
        let parts = &self.parts;
        let found = parts.client.topic(&parts.context, topic).await;
        let found = found.map_err(|error| Halt::Again(format!("writing to {topic}: {}", describe(&error))))?;
        Ok(i32::try_from(found.partitions.len()).unwrap_or(i32::MAX))
    }

    fn sender(&self) -> dead_letters::Sender {
        dead_letters::Sender {
            processor: self.name.clone(),
            version: self.deployment.version,
            module: self.deployment.module,
            input: self.deployment.input.clone(),
            output: self.deployment.output.clone(),
            partition: self.partition(),
        }
    }

    fn log_refusals(&self, refusals: &[Refusal]) {
        for refusal in refusals.iter().take(REFUSALS_LOGGED_MAX) {
            let message = match refusal.why {
                Refused::NullKey => "a row without a key is in no window".to_owned(),
                Refused::Late { windows, of } => format!("a row is late for {windows} of its {of} windows"),
            };
            let fields = vec![("offset".to_owned(), refusal.offset.to_string())];
            self.log(Level::Warn, message, fields);
        }
        if let Some(more) = refusals.len().checked_sub(REFUSALS_LOGGED_MAX).filter(|more| *more > 0) {
            self.log(
                Level::Warn,
                format!("{more} more rows without a key, or late"),
                Vec::new(),
            );
        }
    }
}

fn record(result: &ResultRow) -> ProduceRecord {
    ProduceRecord {
        partition: result.partition,
        timestamp: Some(result.timestamp),
        key: result.key.clone(),
        value: result.value.clone(),
        headers: own_headers(&result.headers),
    }
}

/// Whether the record itself is to blame: it would be refused again and again.
fn is_records_own(error: &RecordError) -> bool {
    let own = matches!(
        error.code,
        ErrorCode::MessageTooLarge
            | ErrorCode::RecordListTooLarge
            | ErrorCode::InvalidRecord
            | ErrorCode::InvalidTimestamp
    );
    own && !error.outcome_open
}
