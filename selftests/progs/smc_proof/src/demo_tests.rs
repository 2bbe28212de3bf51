// SPDX-License-Identifier: GPL-2.0

//! Reports on folders as the demo leaves them.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

const CSV: &str = "\"SET\",\"1000\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n";
const IPERF: &str = r#"{"end":{"sum_received":{"bytes":1000,"bits_per_second":8000000}}}"#;

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn write(&self, file: &str, bytes: impl AsRef<[u8]>) {
        let file = self.0.join(file);
        let parent = file.parent().expect("every file has a folder");
        fs::create_dir_all(parent).expect("the folder can be made");
        fs::write(file, bytes).expect("the file can be written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn statistics(over_smc: u32, fallbacks: u32) -> String {
    let mut text = format!(
        "smc_rs 1\nconnections_smcr {over_smc}\nfallback_total {fallbacks}\n\
         rdma_writes {over_smc}\nrdma_write_bytes {}\ncdc_sent 9\n",
        over_smc * 1000
    );
    if fallbacks > 0 {
        text.push_str(&format!("fallback 0x03030000 client {fallbacks}\n"));
    }
    text
}

/// A capture of one connection whose client sent `stream`, with SMC offered by both ends.
fn capture(stream: &[u8]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    file.resize(24, 0);
    file[20] = 1;
    let option = [1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9];
    let packets = [
        (2, 1, 0x02, &b""[..]),
        (1, 2, 0x12, b""),
        (2, 1, 0x18, stream),
    ];
    for (from, to, flags, payload) in packets {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((48 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 9, 0, from, 10, 9, 0, to]);
        frame.extend([0, from, 0, to, 0, 0, 0, u8::from(flags != 0x02), 0, 0, 0, 0]);
        frame.extend([7 << 4, flags, 0, 0, 0, 0, 0, 0]);
        frame.extend(option);
        frame.extend(payload);
        file.extend([0; 8]);
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend(frame);
    }
    file
}

fn proposal() -> Vec<u8> {
    let mut bytes = vec![0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 124];
    bytes.resize(124, 0);
    bytes
}

fn tcpdump_log(dropped: u32) -> String {
    format!(
        "3 packets captured\n3 packets received by filter\n{dropped} packets dropped by kernel\n"
    )
}

/// The files of a demo that went well.
fn good(name: &str) -> Folder {
    let name = format!("smc_proof-{}-{name}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    for run in ["plain", "smc"] {
        folder.write(&format!("{run}/redis.csv"), CSV);
        folder.write(&format!("{run}/iperf3.json"), IPERF);
    }
    for namespace in ["a", "b"] {
        let file = |part: &str| format!("smc/{namespace}/{part}");
        folder.write(&file("before/smc_rs"), statistics(0, 0));
        folder.write(&file("after/smc_rs"), statistics(3, 0));
        folder.write(&file("before/rdma"), "rxe/sent_pkts 1\n");
        folder.write(&file("after/rdma"), "rxe/sent_pkts 90\n");
        let line = "conn local=10.9.0.2:9 peer=10.9.0.1:1 mode=SMCR state=ACTIVE lgr=100 dev=rxe\n";
        folder.write(&file("during"), format!("smc_rs 1\n{line}smc_rs 1\n{line}"));
    }
    folder.write("smc/tcp.pcap", capture(&proposal()));
    folder.write("smc/tcpdump.log", tcpdump_log(0));
    folder
}

fn report(folder: &Folder) -> Report {
    Report::from_folder(Path::new(&folder.0)).expect("all files are there")
}

/// The sentences of the checks that failed.
fn failures(folder: &Folder) -> Vec<String> {
    let checks = report(folder).checks().into_iter();
    checks
        .filter(|check| !check.passed)
        .map(|check| check.sentence)
        .collect()
}

#[test]
fn a_good_run_passes() {
    let folder = good("good");
    let report = report(&folder);
    assert_eq!(failures(&folder), Vec::<String>::new());
    assert!(report.passed());
    let text = report.text(&Style::plain());
    assert!(text.contains("All bytes went by RDMA."), "{text}");
    assert!(text.contains("0 bytes of payload"), "{text}");
    assert!(text.contains("link group 100 on rxe"), "{text}");
    let json = report.json();
    assert_eq!(json["passed"], true);
    assert_eq!(json["evidence"]["tcp"]["handshake_bytes"], 124);
    assert_eq!(json["evidence"]["rdma"]["packets_sent"], 178);
}

#[test]
fn a_fallback_fails() {
    let folder = good("fallback");
    folder.write("smc/b/after/smc_rs", statistics(3, 2));
    let failures = failures(&folder);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(
        failures[0].contains("2 FELL BACK to TCP (2 times 0x03030000"),
        "{failures:?}"
    );
    let text = report(&folder).text(&Style::plain());
    assert!(
        text.contains("[FAIL]") && text.contains("NOT all bytes"),
        "{text}"
    );
}

#[test]
fn payload_on_tcp_fails() {
    let folder = good("payload");
    folder.write(
        "smc/tcp.pcap",
        capture(&[proposal(), b"SET key".to_vec()].concat()),
    );
    let failures = failures(&folder);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("7 bytes of payload"), "{failures:?}");
}

#[test]
fn a_capture_with_holes_proves_nothing() {
    let folder = good("holes");
    folder.write("smc/tcpdump.log", tcpdump_log(5));
    let failures = failures(&folder);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(
        failures[0].contains("5 packets were MISSED"),
        "{failures:?}"
    );
}

#[test]
fn a_run_without_rdma_fails() {
    let folder = good("no-rdma");
    for namespace in ["a", "b"] {
        folder.write(&format!("smc/{namespace}/after/smc_rs"), "");
        folder.write(&format!("smc/{namespace}/after/rdma"), "");
        folder.write(&format!("smc/{namespace}/during"), "");
    }
    let failures = failures(&folder);
    assert_eq!(failures.len(), 5, "{failures:?}");
    assert!(failures[0].contains("is not loaded"), "{failures:?}");
}

#[test]
fn another_mode_in_the_list_fails() {
    let folder = good("mode");
    let line = "conn local=1 peer=2 mode=TCP state=ACTIVE reason=0x03010000\n";
    folder.write("smc/a/during", line);
    let failures = failures(&folder);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("mode TCP"), "{failures:?}");
}

#[test]
fn a_failed_program_fails() {
    let folder = good("program");
    folder.write("plain/iperf3.json", r#"{"error":"no route"}"#);
    let failures = failures(&folder);
    assert_eq!(failures, ["in the run on TCP iperf3 failed: no route"]);
}

#[test]
fn a_missing_file_is_named() {
    let folder = good("missing");
    fs::remove_file(folder.0.join("smc/tcp.pcap")).expect("the file is there");
    let error = Report::from_folder(&folder.0)
        .err()
        .expect("a file is missing");
    assert!(error.contains("tcp.pcap"), "{error}");
}
