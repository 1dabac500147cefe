//! Parallel work over many files, on one thread per core.

/// Below this many items a thread costs more than it saves.
const MIN_SHARE_ITEMS: usize = 256;

/// Cuts `items` into one share for each core.
pub(crate) fn shares<T>(items: &[T]) -> impl Iterator<Item = &[T]> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    items.chunks(items.len().div_ceil(threads).max(MIN_SHARE_ITEMS))
}

/// Applies `work` to every item, in order, one share per thread.
pub(crate) fn map<T, R, E>(items: &[T], work: impl Fn(&T) -> Result<R, E> + Sync) -> Result<Vec<R>, E>
where
    T: Sync,
    R: Send,
    E: Send,
{
    let shares: Vec<&[T]> = shares(items).collect();
    let results = map_each(&shares, |share| share.iter().map(&work).collect::<Result<Vec<R>, E>>())?;
    Ok(results.into_iter().flatten().collect())
}

/// Applies `work` to every item, in order, one thread per item; the first on this one.
pub(crate) fn map_each<T, R, E>(items: &[T], work: impl Fn(&T) -> Result<R, E> + Sync) -> Result<Vec<R>, E>
where
    T: Sync,
    R: Send,
    E: Send,
{
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = items.iter().skip(1).map(|item| scope.spawn(move || work(item))).collect();
        let first = items.first().map(work);
        let others = others.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        first.into_iter().chain(others).collect()
    })
}
