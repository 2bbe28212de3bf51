// SPDX-License-Identifier: GPL-2.0

//! How fast connections and links are, and how often connections stay on TCP: as a live view on a
//! terminal, else as text or JSON.

mod history;
mod live;
mod rates;
mod sample;
mod text;
mod view;

use std::io::{self, IsTerminal};
use std::thread::sleep;
use std::time::Duration;

use smc_tools::output::{self, Outcome};

use rates::Rates;
use sample::Sampler;

/// The shortest time between two looks: each of them costs the kernel a walk over all sockets.
const SHORTEST: Duration = Duration::from_millis(50);

pub(crate) fn run(interval: f64, count: Option<u32>, json: bool) -> Outcome {
    let pause = Duration::try_from_secs_f64(interval)
        .ok()
        .filter(|pause| *pause >= SHORTEST)
        .ok_or("the interval must be at least 0.05 seconds.")?;
    let sampler = Sampler::open()?;
    if io::stdout().is_terminal() && !json && count.is_none() {
        return live::run(sampler, pause);
    }
    lines(sampler, pause, count, json)
}

/// Text or JSON, again and again until the reader has gone away.
fn lines(mut sampler: Sampler, pause: Duration, count: Option<u32>, json: bool) -> Outcome {
    let mut last = sampler.look()?;
    let mut left = count;
    while left != Some(0) {
        sleep(pause);
        let now = sampler.look()?;
        let rates = Rates::between(&last, &now);
        let wanted = if json {
            output::line_of_json(&rates)?
        } else {
            output::text(&text::text(&rates))?
        };
        if !wanted {
            break;
        }
        last = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}
