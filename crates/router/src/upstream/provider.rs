//! What tells one provider from another. One file for each; which one it is, the configuration says.

use super::headers::Fields;
use crate::dialect::MaximumKey;
use crate::door::Door;

/// What every upstream is asked, also one that is in the process.
pub(super) trait Provider: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// Whether it has this API.
    fn answers(&self, door: Door) -> bool;

    /// The key by which it bounds its output, and whether that is to be inserted also beside others, which it may not
    /// know. None where nothing is to be bounded.
    fn maximum_key(&self, door: Door) -> Option<(MaximumKey, bool)>;
}

/// What a provider that is reached by HTTP is asked besides.
///
/// This leaves room for two kinds that come later. Azure has the model in its path and the version in its query: it
/// gets `path` with one more argument. A provider that takes a short-lived token holds it, fresh, behind a lock, and
/// `authorize` becomes a future that is ready at once but for the call that has to exchange it; `Remote::send` awaits it
/// inside the first-byte limit, and a failed exchange is [`super::SendError::NotReached`]: nothing of the request left.
pub(super) trait OverHttp: Provider {
    /// Where it is, unless the configuration says otherwise; none where it must.
    fn own_url(&self) -> Option<&'static str>;

    /// The path of a door behind the path of the endpoint.
    fn path(&self, base: &str, door: Door) -> String;

    /// Adds what lets a request in. Whatever the client used for that is gone by then.
    fn authorize(&self, headers: &mut Fields);
}
