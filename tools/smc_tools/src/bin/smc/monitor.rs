// SPDX-License-Identifier: GPL-2.0

//! What happens, as it happens.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use smc_netlink::{Event, Events, Reason};
use smc_tools::output::{self, Outcome};

/// An event, and when it was read.
#[derive(Serialize)]
struct Told {
    /// Seconds since 1970.
    time: f64,
    #[serde(flatten)]
    event: Event,
}

pub(crate) fn run(count: Option<u32>, json: bool) -> Outcome {
    let events = Events::open().map_err(|error| match error {
        smc_netlink::Error::NoFamily(_) => {
            "this kernel's SMC tells no events: load smc_rs with \"modprobe smc_rs\".".to_owned()
        }
        other => other.to_string(),
    })?;
    // Whoever starts this wants to know that nothing is missed from now on.
    eprintln!("smc: waiting for events.");
    let mut left = count;
    let mut hinted = HashSet::new();
    loop {
        let new = match events.next() {
            Err(error) if error.is_overrun() => {
                eprintln!("smc: events came too fast and some were lost: \"smc status\" has sums.");
                continue;
            }
            result => result.map_err(|error| error.to_string())?,
        };
        for event in new {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.unwrap_or_default();
            let wanted = if json {
                let time = now.as_secs_f64();
                output::line_of_json(&Told { time, event })?
            } else {
                let line = text(&event, &mut hinted);
                output::text(&format!("{} {line}", time_of_day(now)))?
            };
            left = left.map(|left| left.saturating_sub(1));
            if left == Some(0) || !wanted {
                return Ok(());
            }
        }
    }
}

/// The local time of day, to the millisecond.
fn time_of_day(since_1970: Duration) -> String {
    let seconds = libc::time_t::try_from(since_1970.as_secs()).unwrap_or(0);
    let mut parts = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: Both pointers are to variables of the types that are asked for, and a structure of
    // numbers and a pointer may be all zero, so that it is whole also when the call fails.
    let parts = unsafe {
        libc::localtime_r(&raw const seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    format!(
        "{:02}:{:02}:{:02}.{:03}",
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec,
        since_1970.subsec_millis()
    )
}

/// A line, and below it what to do about the reason of a fallback when it is seen for the first
/// time.
fn text(event: &Event, hinted: &mut HashSet<Reason>) -> String {
    let mut line = event.kind.name().to_owned();
    if let Some(group) = event.group {
        line.push_str(&format!(" {group:08x} over {}", event.device));
        if let (Some(link), Some(port)) = (event.link, event.port) {
            line.push_str(&format!("/{port}, link {link}"));
        }
    }
    if let (Some(local), Some(peer)) = (event.local, event.peer) {
        line.push_str(&format!(" {local} to {peer}"));
    }
    if event.reason.is_some() {
        line.push_str(&format!(": {}", event.reason.describe()));
        if event.peer_reason.is_some() {
            line.push_str(&format!(
                "; the peer says: {}",
                event.peer_reason.describe()
            ));
        }
    }
    if !event.text.is_empty() {
        line.push_str(&format!(": {}", event.text));
    }
    let telling = if event.peer_reason.is_some() {
        event.peer_reason
    } else {
        event.reason
    };
    if telling.is_some() && hinted.insert(telling) {
        line.push_str(&format!("\n    {}", telling.hint()));
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_netlink::EventKind;

    #[test]
    fn an_event_is_a_line_with_a_hint() {
        let event = Event {
            kind: EventKind::Fallback,
            group: None,
            link: None,
            device: String::new(),
            port: None,
            local: Some("192.0.2.1:1".parse().expect("an address")),
            peer: Some("192.0.2.2:2".parse().expect("an address")),
            server: false,
            reason: Reason(0x0301_0000),
            peer_reason: Reason(0),
            text: String::new(),
        };
        let mut hinted = HashSet::new();
        let first = text(&event, &mut hinted);
        let line = "fallback 192.0.2.1:1 to 192.0.2.2:2: the peer does not offer SMC\n";
        assert!(
            first.starts_with(&format!("{line}    Load an SMC")),
            "{first}"
        );
        assert_eq!(text(&event, &mut hinted), line);
        let event = Event {
            kind: EventKind::GroupDown,
            group: Some(0x300),
            device: "rxe0".to_owned(),
            local: None,
            peer: None,
            reason: Reason(0),
            text: "its link failed".to_owned(),
            ..event
        };
        assert_eq!(
            text(&event, &mut hinted),
            "group down 00000300 over rxe0: its link failed\n"
        );
        let event = Event {
            kind: EventKind::LinkDown,
            link: Some(1),
            port: Some(2),
            ..event
        };
        assert_eq!(
            text(&event, &mut hinted),
            "link down 00000300 over rxe0/2, link 1: its link failed\n"
        );
    }

    #[test]
    fn an_event_has_its_time() {
        // Zones differ from each other by whole minutes.
        let time = time_of_day(Duration::from_millis(1_700_000_003_042));
        assert!(time.ends_with(":23.042"), "{time}");
        assert_eq!(time.len(), "00:00:00.000".len());
        let event = Event {
            kind: EventKind::Other,
            group: None,
            link: None,
            device: String::new(),
            port: None,
            local: None,
            peer: None,
            server: false,
            reason: Reason(0),
            peer_reason: Reason(0),
            text: String::new(),
        };
        let json = serde_json::to_value(Told { time: 1.5, event }).expect("it is plain data");
        assert_eq!(
            (&json["time"], &json["kind"]),
            (&1.5.into(), &"other".into())
        );
    }
}
