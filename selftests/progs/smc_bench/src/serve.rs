// SPDX-License-Identifier: GPL-2.0

//! The server: a thread for each connection that is busy, none for those that are kept idle.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use socket2::Socket;

use crate::net::{self, Family, Request};

/// Enough for the functions below; the default would count for much with many connections.
const STACK: usize = 128 * 1024;
const READ_SIZE: usize = 256 * 1024;

/// Connections that clients asked to keep.
type Kept = Arc<Mutex<Vec<Socket>>>;

/// Serves clients; ends only with an error.
pub(crate) fn run(family: Family, bind: SocketAddr) -> Result<(), String> {
    let listener = family.listen(bind)?;
    serve(&listener)
}

fn serve(listener: &Socket) -> Result<(), String> {
    let kept = Kept::default();
    loop {
        let client = match listener.accept() {
            Ok((client, _)) => client,
            // A client that gave up before it was accepted is no matter.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(format!("cannot accept a connection: {error}.")),
        };
        let kept = Arc::clone(&kept);
        thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || {
                if net::prepare(&client).is_ok() {
                    // A client that goes away in the middle sees the error itself.
                    let _ = answer(client, &kept);
                }
            })
            .map_err(|error| format!("cannot start a thread: {error}."))?;
    }
}

fn answer(mut client: Socket, kept: &Kept) -> io::Result<()> {
    match Request::receive(&client) {
        Some(Request::Sink) => sink(&mut client),
        Some(Request::Echo(size)) => echo(&mut client, size as usize),
        Some(Request::Keep) => {
            client.write_all(&[0])?;
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(client);
            Ok(())
        }
        Some(Request::Release) => {
            kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
            client.write_all(&[0])
        }
        None => Ok(()),
    }
}

fn sink(client: &mut Socket) -> io::Result<()> {
    let mut buffer = vec![0; READ_SIZE];
    let mut count = 0u64;
    loop {
        match client.read(&mut buffer)? {
            0 => break,
            length => count += length as u64,
        }
    }
    client.write_all(&count.to_be_bytes())
}

fn echo(client: &mut Socket, size: usize) -> io::Result<()> {
    let mut buffer = vec![0; size];
    loop {
        client.read_exact(&mut buffer)?;
        client.write_all(&buffer)?;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Starts a TCP server on a free port of the loopback interface.
    pub(crate) fn start() -> SocketAddr {
        let listener = Family::Tcp
            .listen(([127, 0, 0, 1], 0).into())
            .expect("the loopback interface is there");
        let address = listener
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket());
        thread::spawn(move || serve(&listener));
        address.expect("a listener has an address")
    }

    #[test]
    fn a_sink_counts_what_it_gets() {
        let mut client = Family::Tcp.connect(start()).expect("the server listens");
        Request::Sink.send(&client).expect("the server reads");
        client.write_all(&[7; 100_000]).expect("the server reads");
        client
            .shutdown(std::net::Shutdown::Write)
            .expect("the connection is open");
        let mut count = [0; 8];
        client.read_exact(&mut count).expect("the server answers");
        assert_eq!(u64::from_be_bytes(count), 100_000);
    }

    #[test]
    fn an_echo_sends_the_same_bytes_back() {
        let mut client = Family::Tcp.connect(start()).expect("the server listens");
        Request::Echo(5).send(&client).expect("the server reads");
        for text in [b"hello", b"world"] {
            client.write_all(text).expect("the server reads");
            let mut answer = [0; 5];
            client.read_exact(&mut answer).expect("the server answers");
            assert_eq!(&answer, text);
        }
    }

    #[test]
    fn kept_connections_stay_until_released() {
        let address = start();
        let mut kept = Family::Tcp.connect(address).expect("the server listens");
        Request::Keep.send(&kept).expect("the server reads");
        kept.read_exact(&mut [0]).expect("the server answers");
        let mut other = Family::Tcp.connect(address).expect("the server listens");
        Request::Release.send(&other).expect("the server reads");
        other.read_exact(&mut [0]).expect("the server answers");
        assert_eq!(kept.read(&mut [0]).expect("the end is no error"), 0);
    }
}
