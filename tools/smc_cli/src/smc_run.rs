// SPDX-License-Identifier: GPL-2.0

//! `smc_run`.

use std::ffi::OsString;

use clap::{ArgAction, Parser};

use crate::size;

/// Run a TCP program with its stream sockets turned into SMC sockets.
///
/// Where the kernel or the peer has no SMC the program runs on TCP as usual.
#[derive(Debug, Parser)]
#[command(name = "smc_run", version, disable_version_flag = true)]
pub struct Options {
    /// Receive buffer size of every socket: bytes, or with k or m
    #[arg(short = 'r', value_name = "SIZE", value_parser = size::parse)]
    pub rcvbuf: Option<u32>,

    /// Send buffer size of every socket: bytes, or with k or m
    #[arg(short = 't', value_name = "SIZE", value_parser = size::parse)]
    pub sndbuf: Option<u32>,

    /// How sockets become SMC sockets: of the family AF_SMC, or of the family that the program
    /// asks for, with the protocol IPPROTO_SMC
    #[arg(short = 'f', value_name = "FAMILY", default_value = "smc", value_parser = ["smc", "inet"])]
    pub family: String,

    /// Say on standard error which sockets are SMC and which are not
    #[arg(short = 'd')]
    pub debug: bool,

    /// Print the version
    #[arg(short = 'v', long = "version", action = ArgAction::Version)]
    pub version: (),

    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        num_args = 1..,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<OsString>,
}
