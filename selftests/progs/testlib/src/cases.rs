// SPDX-License-Identifier: GPL-2.0

//! Programs that play many cases: several at one time, and how they end.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Mutex;

use crate::tap::say;

/// Plays `cases`, up to `jobs` at one time. An error ends that worker, and is returned when all others
/// are done.
///
/// # Errors
///
/// What `play` could not go on after, or that it panicked.
pub fn in_parallel<T: Send>(
    cases: Vec<T>,
    jobs: usize,
    play: impl Fn(T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let queue = Mutex::new(VecDeque::from(cases));
    let worker = || loop {
        let next = queue.lock().ok().and_then(|mut queue| queue.pop_front());
        let Some(case) = next else {
            return Ok(());
        };
        play(case)?;
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        let mut outcome = Ok(());
        // All of them end before this returns.
        for worker in workers {
            let panicked = |_| Err("a case panicked".to_owned());
            outcome = outcome.and(worker.join().unwrap_or_else(panicked));
        }
        outcome
    })
}

/// Prints the names of cases, with the role that plays them.
pub fn list<'a>(role: &str, names: impl Iterator<Item = &'a str>) {
    for name in names {
        say(&format!("{role} {name}"));
    }
}

/// How a program ends that counted its failed cases, or could not play them.
pub fn finish(program: &str, outcome: Result<usize, String>) -> ExitCode {
    match outcome {
        Ok(failed) => ExitCode::from(u8::from(failed > 0)),
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_case_is_played_once() {
        let sum = AtomicUsize::new(0);
        let result = in_parallel((0..10).collect(), 3, |n| {
            sum.fetch_add(n, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(result, Ok(()));
        assert_eq!(sum.into_inner(), 45);
    }

    #[test]
    fn an_error_is_told() {
        let result = in_parallel(vec![1, 2], 1, |_| Err("no room".to_owned()));
        assert_eq!(result, Err("no room".to_owned()));
    }
}
