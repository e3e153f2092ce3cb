//! Bytes in and out of sockets: listeners, connections, frames, and the seam through which requests reach a node.
//!
//! What arrives is hostile until it has been decoded: a frame is refused by its length before memory is taken for it, a
//! request that does not decode ends its connection, and nothing here is unbounded. Answers leave a connection in the
//! order of its requests.

mod answers;
pub mod connection;
pub mod dispatch;
pub mod frame;
pub mod listener;
pub mod peer;

pub use connection::ConnectionLimits;
pub use dispatch::{Answer, ApiVersionRange, Dispatch, DispatchFuture, Principal, RequestContext};
pub use listener::{BindError, Listener, ListenerLimits};
pub use peer::{CallError, Peer};
