// SPDX-License-Identifier: GPL-2.0

//! Runs the built `smc_run` on real programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{OnceLock, PoisonError, RwLock};
use std::thread;

/// Set in the process that this test program starts as the program under `smc_run`.
const INSIDE: &str = "SMC_RUN_TEST_INSIDE";

/// A process that is started while a file is open for writing has it open, too, until it runs its own
/// program, and a program in such a file cannot be run. So nothing is started while one is written.
static PROGRAMS: RwLock<()> = RwLock::new(());

/// Copies an executable file.
fn copy_program(from: &Path, to: &Path) {
    let _nothing_starts = PROGRAMS.write().unwrap_or_else(PoisonError::into_inner);
    fs::copy(from, to).expect("the program is there and the folder is writable");
}

/// A folder laid out as an installation: `bin/smc_run` and `lib/libsmc_preload.so`.
fn installed() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let folder = tempfile::tempdir().expect("there is a folder for temporary files");
            let test = std::env::current_exe().expect("the test knows its own file");
            let library = test.with_file_name("libsmc_preload.so");
            for (from, to) in [
                (Path::new(env!("CARGO_BIN_EXE_smc_run")), "bin/smc_run"),
                (library.as_path(), "lib/libsmc_preload.so"),
            ] {
                let to = folder.path().join(to);
                fs::create_dir(to.parent().expect("the names have a folder"))
                    .expect("the folder is new");
                copy_program(from, &to);
            }
            folder
        })
        .path()
}

fn smc_run() -> Command {
    let mut command = Command::new(installed().join("bin/smc_run"));
    for variable in ["LD_PRELOAD", "SMC_DEBUG", "SMC_SNDBUF", "SMC_RCVBUF"] {
        command.env_remove(variable);
    }
    command
}

fn output(command: &mut Command) -> Output {
    let _nothing_is_written = PROGRAMS.read().unwrap_or_else(PoisonError::into_inner);
    command.output().expect("smc_run must start")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn arguments_arrive_as_given() {
    let given: [&[u8]; 9] = [
        b"plain",
        b"two words",
        b"",
        b"it's",
        b"\"quoted\"",
        b"-d",
        b"--",
        b"new\nline",
        b"\xff\xfe",
    ];
    let arguments = given.map(OsStr::from_bytes);
    let result = output(smc_run().args(["printf", "[%s]"]).args(arguments));
    let mut expected = Vec::new();
    for argument in given {
        expected.extend_from_slice(b"[");
        expected.extend_from_slice(argument);
        expected.extend_from_slice(b"]");
    }
    assert_eq!(result.stdout, expected, "{}", text(&result.stderr));
    assert_eq!(text(&result.stderr), "");
}

#[test]
fn status_and_process_are_the_programs_own() {
    for status in [0, 1, 42, 255] {
        let result = output(smc_run().args(["sh", "-c", &format!("exit {status}")]));
        assert_eq!(result.status.code(), Some(status));
    }
    let mut command = smc_run();
    let nothing_is_written = PROGRAMS.read().unwrap_or_else(PoisonError::into_inner);
    let child = command
        .args(["sh", "-c", "echo $$"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("smc_run must start");
    drop(nothing_is_written);
    let id = child.id().to_string();
    let result = child.wait_with_output().expect("the program must end");
    assert_eq!(text(&result.stdout).trim(), id);
}

#[test]
fn signal_dispositions_are_inherited() {
    // The shell starts with SIGPIPE ignored (bit 12) or not, and the program must see the same.
    for (setup, ignored) in [("trap '' PIPE;", true), ("", false)] {
        let script = format!("{setup} exec \"$0\" grep SigIgn /proc/self/status");
        let result = output(
            Command::new("sh")
                .args(["-c", &script])
                .arg(installed().join("bin/smc_run")),
        );
        let line = text(&result.stdout);
        let mask = line
            .split_whitespace()
            .nth(1)
            .expect("grep prints the mask");
        let mask = u64::from_str_radix(mask, 16).expect("the mask is hexadecimal");
        assert_eq!(mask >> 12 & 1 == 1, ignored, "{line}");
    }
}

#[test]
fn settings_reach_the_program() {
    let result = output(smc_run().args(["-d", "-f", "inet", "-r", "128k", "-t", "1M", "env"]));
    let lines = text(&result.stdout);
    for line in [
        "SMC_DEBUG=1",
        "SMC_FAMILY=inet",
        "SMC_RCVBUF=131072",
        "SMC_SNDBUF=1048576",
    ] {
        assert!(
            lines.lines().any(|found| found == line),
            "{line} is not in {lines}"
        );
    }
    let result = output(smc_run().env("LD_PRELOAD", "libdl.so.2").args(["env"]));
    let lines = text(&result.stdout);
    let preload = lines
        .lines()
        .find_map(|line| line.strip_prefix("LD_PRELOAD="));
    let preload = preload.expect("LD_PRELOAD must be set");
    assert!(preload.starts_with("libdl.so.2:/"), "{preload}");
    assert!(preload.ends_with("/libsmc_preload.so"), "{preload}");
    assert!(!lines.contains("SMC_DEBUG"), "{lines}");
}

#[test]
fn mistakes_end_in_a_sentence_and_the_usual_status() {
    let result = output(smc_run().arg("no-such-program"));
    assert_eq!(result.status.code(), Some(127));
    assert!(text(&result.stderr).contains("no program \"no-such-program\""));
    let result = output(smc_run().arg("/no/such/program"));
    assert_eq!(result.status.code(), Some(127));
    let result = output(smc_run().arg("/dev/null"));
    assert_eq!(result.status.code(), Some(126));
    assert!(text(&result.stderr).contains("cannot be run"));
    let result = output(smc_run().args(["-r", "12q", "true"]));
    assert_eq!(result.status.code(), Some(125));
    assert!(text(&result.stderr).contains("a size is digits"));
    assert_eq!(output(&mut smc_run()).status.code(), Some(125));
    for option in ["-v", "-h"] {
        let result = output(smc_run().arg(option));
        assert_eq!(result.status.code(), Some(0));
        assert!(text(&result.stdout).contains("smc_run"));
    }
    let alone = tempfile::tempdir().expect("there is a folder for temporary files");
    let alone = alone.path().join("smc_run");
    copy_program(Path::new(env!("CARGO_BIN_EXE_smc_run")), &alone);
    let result = output(Command::new(&alone).arg("true"));
    // Another copy may be installed in the system's folder.
    if !Path::new("/usr/lib/libsmc_preload.so").exists() {
        assert_eq!(result.status.code(), Some(125));
        assert!(text(&result.stderr).contains("libsmc_preload.so is missing"));
    }
}

/// Writes an executable file made of `bytes`.
fn program(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let file = folder.join(name);
    let _nothing_starts = PROGRAMS.write().unwrap_or_else(PoisonError::into_inner);
    fs::write(&file, bytes).expect("the test folder is writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    file
}

#[test]
fn a_static_program_is_warned_about_and_run() {
    // exit(7) as a whole static program: one loadable segment and twelve bytes of code.
    #[cfg(target_arch = "x86_64")]
    {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let code = [0xb8, 60, 0, 0, 0, 0xbf, 7, 0, 0, 0, 0x0f, 0x05];
        let mut bytes = vec![0u8; 120];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let base = 0x40_0000_u64;
        for (at, value) in [
            (16, 2u64),
            (18, 62),
            (20, 1),
            (52, 64),
            (54, 56),
            (56, 1),
            (64, 1),
            (68, 5),
        ] {
            bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        }
        for (at, value) in [
            (24, base + 120),
            (32, 64),
            (80, base),
            (88, base),
            (96, 132),
            (104, 132),
            (112, 4096),
        ] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&code);
        let file = program(folder.path(), "static", &bytes);
        let result = output(smc_run().arg(&file));
        assert_eq!(result.status.code(), Some(7), "{}", text(&result.stderr));
        let warning = text(&result.stderr);
        assert!(warning.contains("is statically linked"), "{warning}");
        assert_eq!(warning.lines().count(), 1, "{warning}");
        // A script is judged by its interpreter.
        let script = format!("#!{}\n", file.display());
        let script = program(folder.path(), "script", script.as_bytes());
        let result = output(smc_run().arg(&script));
        assert_eq!(result.status.code(), Some(7));
        assert!(text(&result.stderr).contains("is statically linked"));
    }
}

#[test]
fn a_setuid_program_is_warned_about_and_run() {
    // Only root may give a file away; the owner's own setuid program gains nothing.
    if !nix::unistd::Uid::current().is_root() {
        eprintln!("not root: the setuid case is left out");
        return;
    }
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let file = folder.path().join("true");
    copy_program(Path::new("/bin/true"), &file);
    std::os::unix::fs::chown(&file, Some(65534), None).expect("root may change the owner");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4755)).expect("the file is ours");
    let result = output(smc_run().arg(&file));
    assert_eq!(result.status.code(), Some(0));
    assert!(text(&result.stderr).contains("is a setuid program"));
}

#[test]
fn many_threads_may_start_with_a_socket() {
    if std::env::var_os(INSIDE).is_some() {
        let threads: Vec<_> = (0..64)
            .map(|_| thread::spawn(|| std::net::TcpListener::bind("127.0.0.1:0").is_ok()))
            .collect();
        let opened = threads.into_iter().filter_map(|thread| thread.join().ok());
        assert_eq!(opened.filter(|&is_open| is_open).count(), 64);
        return;
    }
    let myself = std::env::current_exe().expect("the test knows its own file");
    let result = output(
        smc_run()
            .arg("-d")
            .arg(myself)
            .args([
                "--exact",
                "many_threads_may_start_with_a_socket",
                "--nocapture",
            ])
            .env(INSIDE, "1"),
    );
    let log = text(&result.stderr);
    assert_eq!(result.status.code(), Some(0), "{log}");
    // One line per socket shows that the library was loaded and took every call.
    assert_eq!(log.matches("libsmc_preload: socket ").count(), 64, "{log}");
}
