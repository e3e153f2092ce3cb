//! When to try again: after a pause that doubles, until a deadline.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::Error;

const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The attempts that are left.
#[derive(Debug)]
pub(crate) struct Retry {
    deadline: Instant,
    pause: Duration,
}

impl Retry {
    pub(crate) fn within(wait: Duration) -> Self {
        Retry {
            deadline: Instant::now() + wait,
            pause: PAUSE_FIRST,
        }
    }

    /// How long the next attempt may take.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits before the next attempt; false if it would come after the deadline.
    pub(crate) async fn pause(&mut self) -> bool {
        if self.remaining() <= self.pause {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

/// Attempts something until it works, fails for good or `wait` is over; then the last error stands.
pub(crate) async fn retrying<T, F>(wait: Duration, mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut retry = Retry::within(wait);
    loop {
        match attempt().await {
            Err(error) if error.is_retriable() => {
                if !retry.pause().await {
                    return Err(error);
                }
                tracing::debug!(%error, "trying again");
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn refused(code: model::ErrorCode) -> Error {
        Error::refused(code.code(), None, "trying")
    }

    #[tokio::test(start_paused = true)]
    async fn a_retriable_error_is_tried_again_until_the_deadline() {
        let attempts = Cell::new(0);
        let start = Instant::now();
        let result: Result<(), Error> = retrying(Duration::from_secs(5), || {
            attempts.set(attempts.get() + 1);
            async { Err(refused(model::ErrorCode::NotCoordinator)) }
        })
        .await;
        assert!(result.is_err());
        assert!(start.elapsed() <= Duration::from_secs(5));
        assert!((8..12).contains(&attempts.get()), "{}", attempts.get());
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_for_good_is_not_tried_again() {
        let attempts = Cell::new(0);
        let result: Result<(), Error> = retrying(Duration::from_secs(5), || {
            attempts.set(attempts.get() + 1);
            async { Err(refused(model::ErrorCode::TopicAlreadyExists)) }
        })
        .await;
        assert!(result.is_err());
        assert_eq!(attempts.get(), 1);
    }
}
