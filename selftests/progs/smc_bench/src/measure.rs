// SPDX-License-Identifier: GPL-2.0

//! Throughput, latency and connection rate. Each prints one line of JSON.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::Socket;

use crate::net::{Family, Request};
use crate::probe::Probe;
use crate::stats::Times;

/// Round trips before the measurement begins.
const WARM_UP: u32 = 50;

/// Turns an error of the connection into a sentence.
pub(crate) fn broken(error: std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => "the peer was silent for too long.".to_owned(),
        _ => format!("the connection broke: {error}."),
    }
}

/// Sends writes of `size` bytes for some time and waits until the server has them all.
pub(crate) fn stream(
    family: Family,
    server: SocketAddr,
    size: usize,
    time: Duration,
) -> Result<(), String> {
    let probe = Probe::take(family)?;
    let mut socket = family.connect(server)?;
    Request::Sink.send(&socket).map_err(broken)?;
    let data = vec![0x5a; size.max(1)];
    let mut times = Times::default();
    let begin = Instant::now();
    let mut sent = 0u64;
    while begin.elapsed() < time {
        let before = Instant::now();
        socket.write_all(&data).map_err(broken)?;
        times.push(before.elapsed());
        sent += data.len() as u64;
    }
    socket.shutdown(Shutdown::Write).map_err(broken)?;
    let mut count = [0; 8];
    socket.read_exact(&mut count).map_err(broken)?;
    let elapsed = begin.elapsed().as_secs_f64();
    let received = u64::from_be_bytes(count);
    if received != sent {
        return Err(format!("{sent} bytes were sent and {received} arrived."));
    }
    let counts = probe.finish(1, times.count() as u64)?;
    let line = json!({
        "test": "stream",
        "family": family.name(),
        "size": size,
        "bytes": sent,
        "seconds": elapsed,
        "mbit_per_second": sent as f64 * 8e-6 / elapsed,
        "write_us": times.json(),
        "per_operation": counts,
    });
    println!("{line}");
    Ok(())
}

/// Sends messages of `size` bytes back and forth for some time.
pub(crate) fn latency(
    family: Family,
    server: SocketAddr,
    size: usize,
    time: Duration,
) -> Result<(), String> {
    let probe = Probe::take(family)?;
    let mut socket = family.connect(server)?;
    let request = u32::try_from(size).map_err(|_| "the size is too large.".to_owned())?;
    Request::Echo(request.max(1))
        .send(&socket)
        .map_err(broken)?;
    let mut buffer = vec![0x5a; size.max(1)];
    for _ in 0..WARM_UP {
        round_trip(&mut socket, &mut buffer)?;
    }
    let mut times = Times::default();
    let begin = Instant::now();
    while begin.elapsed() < time {
        let before = Instant::now();
        round_trip(&mut socket, &mut buffer)?;
        times.push(before.elapsed());
    }
    let operations = times.count() as u64;
    let counts = probe.finish(1, operations + u64::from(WARM_UP))?;
    let line = json!({
        "test": "latency",
        "family": family.name(),
        "size": size,
        "round_trips": operations,
        "round_trip_us": times.json(),
        "per_operation": counts,
    });
    println!("{line}");
    Ok(())
}

fn round_trip(socket: &mut Socket, buffer: &mut [u8]) -> Result<(), String> {
    socket.write_all(buffer).map_err(broken)?;
    socket.read_exact(buffer).map_err(broken)
}

/// Opens connections one after the other for some time; each carries one byte both ways.
pub(crate) fn connect(family: Family, server: SocketAddr, time: Duration) -> Result<(), String> {
    let probe = Probe::take(family)?;
    let mut times = Times::default();
    let begin = Instant::now();
    while begin.elapsed() < time {
        let before = Instant::now();
        let mut socket = family.connect(server)?;
        Request::Echo(1).send(&socket).map_err(broken)?;
        round_trip(&mut socket, &mut [0x5a])?;
        drop(socket);
        times.push(before.elapsed());
    }
    let elapsed = begin.elapsed().as_secs_f64();
    let connections = times.count() as u64;
    let counts = probe.finish(connections, connections)?;
    let line = json!({
        "test": "connect",
        "family": family.name(),
        "connections": connections,
        "connections_per_second": connections as f64 / elapsed,
        "connection_us": times.json(),
        "per_operation": counts,
    });
    println!("{line}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::start;

    #[test]
    fn all_measurements_work_over_tcp() {
        let time = Duration::from_millis(20);
        assert_eq!(stream(Family::Tcp, start(), 65_536, time), Ok(()));
        assert_eq!(latency(Family::Tcp, start(), 4096, time), Ok(()));
        assert_eq!(connect(Family::Tcp, start(), time), Ok(()));
    }

    #[test]
    fn a_server_that_is_not_there_is_told() {
        let nowhere = ([127, 0, 0, 1], 1).into();
        let error = latency(Family::Tcp, nowhere, 1, Duration::from_millis(1));
        let error = error.expect_err("nobody listens on port 1");
        assert!(error.contains("cannot connect"), "{error}");
    }
}
