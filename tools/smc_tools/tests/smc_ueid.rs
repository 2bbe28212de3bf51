// SPDX-License-Identifier: GPL-2.0

//! Runs the built `smc_ueid`; the exchange with a kernel that has SMC is tested in the VM.

use std::process::{Command, Output};

fn smc_ueid(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_smc_ueid"))
        .args(arguments)
        .output()
        .expect("smc_ueid must start")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_bad_identifier_is_refused_before_the_kernel_is_asked() {
    for bad in ["lower", "A_B", "", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        let output = smc_ueid(&["add", bad]);
        assert_eq!(output.status.code(), Some(2), "{bad:?}");
        assert!(
            errors(&output).contains("an identifier"),
            "{}",
            errors(&output)
        );
    }
}

#[test]
fn a_kernel_without_smc_is_told_in_one_sentence() {
    if std::path::Path::new("/sys/module/smc").exists()
        || std::path::Path::new("/sys/module/smc_rs").exists()
    {
        eprintln!("this kernel has SMC: the case is left out");
        return;
    }
    for arguments in [
        &["add", "LAB-1"][..],
        &["del", "LAB-1"],
        &["flush"],
        &["list"],
        &["list", "--json"],
    ] {
        let output = smc_ueid(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let sentence = errors(&output);
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        assert!(sentence.contains("modprobe smc_rs"), "{sentence}");
    }
}
