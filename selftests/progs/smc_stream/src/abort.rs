// SPDX-License-Identifier: GPL-2.0

//! Connections that one side resets while both directions are busy.

use crate::kill::{until_end, Flow, Gone};
use crate::plan::{Plan, Script, Side};
use crate::report::ConnReport;
use std::time::{Duration, Instant};
use testlib::event::poll_one;
use testlib::sock::Sock;

/// Streams both ways until the plan's victim resets the connection; the other side must be told.
///
/// # Errors
///
/// The first thing that went wrong.
pub(crate) fn run(
    sock: Sock,
    plan: &Plan,
    script: &Script,
    side: Side,
) -> Result<ConnReport, String> {
    if plan.victim.side() == side {
        return reset(sock, plan, script, side);
    }
    let (report, gone) = until_end(&sock, plan, script, side)?;
    let told = gone == Gone::Reset
        || sock
            .take_error()
            .is_ok_and(|error| error == libc::ECONNRESET);
    if told {
        Ok(report)
    } else {
        Err("the reset looked like an end in order".into())
    }
}

/// Closes with a linger time of zero in the middle of the streams.
fn reset(sock: Sock, plan: &Plan, script: &Script, side: Side) -> Result<ConnReport, String> {
    let mut flow = Flow::new(&sock, plan, script, side)?;
    let end = Instant::now() + Duration::from_millis(script.kill_after_ms);
    while Instant::now() < end {
        if let Some(gone) = flow.step()? {
            return Err(format!("the peer ended first: {gone:?}"));
        }
    }
    let report = flow.report();
    // The SMC that comes with the kernel takes no notice of the linger time: it resets what has
    // bytes that nobody read.
    if poll_one(&sock, libc::POLLIN, 10_000).map_err(|e| format!("poll failed: {e}"))? == 0 {
        return Err("nothing more arrived within 10 s".into());
    }
    sock.set_linger(true, 0)
        .map_err(|e| format!("SO_LINGER: {e}"))?;
    sock.close().map_err(|e| format!("close failed: {e}"))?;
    Ok(report)
}
