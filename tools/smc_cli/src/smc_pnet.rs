// SPDX-License-Identifier: GPL-2.0

//! `smc_pnet`.

use clap::Parser;

/// Show or set which devices are on one network; the whole table without options.
#[derive(Debug, Parser)]
#[command(name = "smc_pnet", version, disable_version_flag = true)]
pub struct Options {
    /// Add a row; a network or RDMA device is needed
    #[arg(short, long, conflicts_with_all = ["delete", "show", "flush"], requires = "name")]
    pub add: bool,
    /// Remove the rows of a network
    #[arg(short, long, conflicts_with_all = ["show", "flush"], requires = "name")]
    pub delete: bool,
    /// Show the rows of a network
    #[arg(short, long, conflicts_with = "flush")]
    pub show: bool,
    /// Remove all rows
    #[arg(short, long, conflicts_with = "name")]
    pub flush: bool,
    /// Network device of the row
    #[arg(short = 'I', long, value_name = "DEVICE")]
    pub interface: Option<String>,
    /// RDMA device of the row
    #[arg(short = 'D', long, value_name = "DEVICE")]
    pub ibdevice: Option<String>,
    /// Port of the RDMA device
    #[arg(short = 'P', long, value_name = "PORT", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub ibport: Option<u8>,
    /// JSON instead of text
    #[arg(short, long)]
    pub json: bool,
    /// Show the version
    #[arg(short, long, action = clap::ArgAction::Version)]
    pub version: Option<bool>,
    /// Name of the network: up to 16 letters and digits
    pub name: Option<String>,
}
