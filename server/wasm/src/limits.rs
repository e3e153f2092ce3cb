//! What one instance may hold, whatever it asks for.

use wasmtime::ResourceLimiter;

/// A component is three to forty core instances, depending on the language it was written in.
pub(crate) const CORE_INSTANCES_MAX: usize = 64;
pub(crate) const TABLES_MAX: usize = 64;
pub(crate) const TABLE_ELEMENTS_MAX: usize = 100_000;
pub(crate) const MEMORIES_MAX: usize = 4;
/// Handles of resources; nothing that is offered today makes any.
pub(crate) const HANDLES_MAX: usize = 1_000;
/// Bytes of lists and texts that one call may move between host and guest, as the host counts them.
pub(crate) const HOST_CALL_BYTES_MAX: usize = 128 << 20;
/// Native stack of a guest.
pub(crate) const STACK_BYTES_MAX: usize = 512 << 10;
/// An instance that has grown past this share of its memory is replaced between two calls, as memory never shrinks.
const RECYCLE_ABOVE_PERCENT: usize = 60;

/// The instance asked for more memory than it may have.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the instance asked for {wanted} bytes of memory, the limit is {limit}")]
pub(crate) struct MemoryExceeded {
    wanted: usize,
    limit: usize,
}

/// Keeps count for one instance.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_limit: usize,
    memory_bytes: usize,
}

impl Limiter {
    pub(crate) fn new(memory_limit: usize) -> Self {
        Limiter {
            memory_limit,
            memory_bytes: 0,
        }
    }

    pub(crate) fn wants_recycling(&self) -> bool {
        self.memory_bytes > self.memory_limit / 100 * RECYCLE_ABOVE_PERCENT
    }
}

impl ResourceLimiter for Limiter {
    /// Refusing by a trap keeps the reason; told "no", most guests would only abort.
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if wanted > self.memory_limit {
            let limit = self.memory_limit;
            return Err(MemoryExceeded { wanted, limit }.into());
        }
        self.memory_bytes = wanted;
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_for_all_memories_together() {
        let mut limiter = Limiter::new(1_000);
        assert!(limiter.memory_growing(0, 400, None).unwrap());
        assert!(limiter.memory_growing(0, 200, None).unwrap());
        assert!(!limiter.wants_recycling());
        assert!(limiter.memory_growing(400, 401, None).unwrap());
        assert!(limiter.wants_recycling());
        let error = limiter.memory_growing(200, 600, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the instance asked for 1001 bytes of memory, the limit is 1000"
        );
    }
}
