// SPDX-License-Identifier: GPL-2.0

//! `smc_pnet` says which network and RDMA devices are on one network.

use std::process::ExitCode;

use clap::Parser;
use smc_cli::smc_pnet::Options;
use smc_netlink::{Error, Pnet, PnetEntry, PnetTarget};
use smc_tools::output::{self, finish, Outcome};

fn main() -> ExitCode {
    finish("smc_pnet", run(&Options::parse()))
}

fn run(options: &Options) -> Outcome {
    let words = |error: Error| error.to_string();
    let mut pnet = Pnet::open().map_err(words)?;
    let name = options.name.as_deref().unwrap_or_default();
    if options.add {
        return add(&mut pnet, name, options);
    }
    if options.delete {
        return pnet.remove(name).map_err(|error| match error {
            Error::Kernel(libc::ENOENT) => format!("the network {name} is not in the table."),
            other => other.to_string(),
        });
    }
    if options.flush {
        return match pnet.flush() {
            // Some kernels say so of an empty table.
            Ok(()) | Err(Error::Kernel(libc::ENOENT)) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
    }
    let entries = match (&options.name, options.show) {
        (None, _) => pnet.all(),
        (Some(name), true) => pnet.get(name),
        (Some(name), false) => {
            return Err(format!("say what to do with {name}: -a, -d or -s."));
        }
    };
    show(&entries.map_err(words)?, options.json)
}

fn add(pnet: &mut Pnet, name: &str, options: &Options) -> Outcome {
    if options.interface.is_none() && options.ibdevice.is_none() {
        return Err("say which device is on the network: -I or -D.".to_owned());
    }
    let port = options.ibport.filter(|port| *port != 0).unwrap_or(1);
    let target = PnetTarget {
        interface: options.interface.clone(),
        device: options.ibdevice.clone().map(|device| (device, port)),
    };
    pnet.add(name, &target).map_err(|error| match error {
        Error::Kernel(libc::EEXIST) => "the device is on a network already.".to_owned(),
        Error::Kernel(libc::ENODEV) => "there is no such device.".to_owned(),
        Error::Kernel(libc::EINVAL) => {
            format!("the kernel refuses this: {name} must be 1 to 16 letters and digits.")
        }
        other => other.to_string(),
    })
}

fn show(entries: &[PnetEntry], json: bool) -> Outcome {
    if json {
        return output::print_json(&entries);
    }
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            format!(
                "{} {} {} {}\n",
                entry.name, entry.interface, entry.device, entry.port
            )
        })
        .collect();
    output::print(&lines.concat())
}
