// SPDX-License-Identifier: GPL-2.0

//! The states that scenarios begin in.

use crate::call::{pattern, Call, To};
use crate::patience::pause;
use crate::stage::{wait_mask, Accepted, Place, Stage};
use crate::world::{Mode, Network};
use libc::{MSG_OOB, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLPRI, POLLRDHUP};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use testlib::sock::{RawAddr, Sock};

/// Which end of a connection the socket under test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// A state of the socket under test, which does not block unless a scenario says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Fresh,
    Bound,
    Listening,
    /// One connection waits for `accept()`.
    Pending,
    /// Listened, until `shutdown()`.
    ListenShut,
    /// A connection is being made, and never will be.
    Connecting,
    /// `connect()` was refused, and nobody has asked.
    Refused,
    /// The same, and `SO_ERROR` was read.
    RefusedRead,
    /// Connected, the client's end.
    Client,
    /// Connected, the server's end.
    Server,
    /// Ten bytes can be read.
    Data,
    /// The peer has shut its writing side.
    PeerShut,
    /// The same, after ten bytes.
    PeerShutData,
    /// This end has shut its writing side.
    ShutWr,
    ShutRd,
    /// The same while ten bytes can be read.
    ShutRdData,
    ShutBoth,
    /// Each end has shut its writing side.
    BothShut,
    /// The peer has closed.
    PeerClosed,
    /// The same, after ten bytes.
    PeerClosedData,
    /// This end has shut its writing side, then the peer has closed.
    ShutPeerClosed,
    /// The peer closed without having read what came.
    PeerClosedUnread,
    /// The peer has reset the connection.
    Reset,
    /// The same, after ten bytes.
    ResetData,
    /// The same, and `SO_ERROR` was read.
    ResetRead,
    /// Nothing more can be written.
    Full,
    /// The peer has sent one urgent byte after four others.
    Urgent,
    /// The same with `SO_OOBINLINE`.
    UrgentInline,
    /// Was connected, until `connect()` to no address.
    Disconnected,
}

/// All of them.
pub(crate) const ALL: &[State] = &[
    State::Fresh,
    State::Bound,
    State::Listening,
    State::Pending,
    State::ListenShut,
    State::Connecting,
    State::Refused,
    State::RefusedRead,
    State::Client,
    State::Server,
    State::Data,
    State::PeerShut,
    State::PeerShutData,
    State::ShutWr,
    State::ShutRd,
    State::ShutRdData,
    State::ShutBoth,
    State::BothShut,
    State::PeerClosed,
    State::PeerClosedData,
    State::ShutPeerClosed,
    State::PeerClosedUnread,
    State::Reset,
    State::ResetData,
    State::ResetRead,
    State::Full,
    State::Urgent,
    State::UrgentInline,
    State::Disconnected,
];

fn call<T>(what: &str, result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|e| format!("{what} failed: {e}"))
}

fn until(what: &str, sock: &Sock, want: i16) -> Result<(), String> {
    wait_mask(sock, want).map_err(|got| format!("{what}: poll() gives {got}"))
}

impl State {
    fn role(self) -> Role {
        match self {
            State::Listening | State::Pending | State::ListenShut | State::Server => Role::Server,
            _ => Role::Client,
        }
    }

    /// Whether the socket has a connection or had one.
    fn is_connected(self) -> bool {
        !matches!(
            self,
            State::Fresh
                | State::Bound
                | State::Listening
                | State::Pending
                | State::ListenShut
                | State::Connecting
                | State::Refused
                | State::RefusedRead
        )
    }

    /// Brings a socket into the state. `prepare` gets it before it is connected.
    ///
    /// # Errors
    ///
    /// What could not be reached.
    pub(crate) fn build<'a>(
        self,
        mode: &'a Mode,
        network: &'a Network,
        prepare: impl Fn(&Sock) -> Result<(), String>,
    ) -> Result<Stage<'a>, String> {
        let mut stage = set_up(self.role(), mode, network)?;
        prepare(&stage.subject)?;
        if self == State::Full {
            // TCP's buffers grow while they are filled, unless their size is given.
            let size = stage
                .subject
                .set_int(libc::SOL_SOCKET, libc::SO_SNDBUF, 30_000);
            call("SO_SNDBUF", size)?;
            let listener = stage.listener.as_ref().ok_or("there is no listener")?;
            let size = listener.set_int(libc::SOL_SOCKET, libc::SO_RCVBUF, 30_000);
            call("SO_RCVBUF", size)?;
        }
        if self.is_connected() {
            stage.connect()?;
            stage.check_use()?;
        } else {
            stage.alone(self)?;
        }
        call("O_NONBLOCK", stage.subject.set_nonblocking(true))?;
        stage.shape(self)?;
        Ok(stage)
    }
}

fn set_up<'a>(role: Role, mode: &'a Mode, network: &'a Network) -> Result<Stage<'a>, String> {
    let server = &network.server;
    let client = &network.client;
    // The listener is the socket under test where servers are tested.
    let family = if role == Role::Server {
        mode.subject
    } else {
        mode.peer
    };
    let listener = call("socket()", server.socket(family))?;
    call("bind()", listener.bind(SocketAddr::new(server.ip(mode), 0)))?;
    let addr = call("getsockname()", listener.local())?;
    let silent = call("socket()", server.socket(mode.peer.tcp()))?;
    call("bind()", silent.bind(SocketAddr::new(server.ip(mode), 0)))?;
    let closed = call("getsockname()", silent.local())?;
    let near = Place {
        family: mode.subject,
        own: client.ip(mode),
        other: server.ip(mode),
        server: addr,
        closed,
    };
    let far = Place {
        family: mode.peer,
        own: near.other,
        other: near.own,
        ..near.clone()
    };
    let (place, far, subject, listener) = if role == Role::Server {
        (far, near, listener, None)
    } else {
        call("listen()", listener.listen(16))?;
        let subject = call("socket()", client.socket(mode.subject))?;
        (near, far, subject, Some(listener))
    };
    Ok(Stage {
        mode,
        network,
        role,
        place,
        far,
        subject: Arc::new(subject),
        peer: None,
        listener,
        kept: vec![silent],
        more: Arc::new(Accepted::new(Vec::new())),
        task: None,
        epoll: None,
    })
}

impl Stage<'_> {
    fn connect(&mut self) -> Result<(), String> {
        if self.role == Role::Client {
            call("connect()", self.subject.connect(self.place.server))?;
            let listener = self.listener.as_ref().ok_or("there is no listener")?;
            let (peer, _) = call("accept()", listener.accept(libc::SOCK_CLOEXEC))?;
            self.peer = Some(peer);
            return Ok(());
        }
        call("listen()", self.subject.listen(16))?;
        let peer = call("socket()", self.network.client.socket(self.mode.peer))?;
        call("connect()", peer.connect(self.place.server))?;
        let (subject, _) = call("accept()", self.subject.accept(libc::SOCK_CLOEXEC))?;
        let listener = std::mem::replace(&mut self.subject, Arc::new(subject));
        self.listener = Arc::try_unwrap(listener).ok();
        self.peer = Some(peer);
        Ok(())
    }

    /// States without a connection.
    fn alone(&mut self, state: State) -> Result<(), String> {
        let subject = &self.subject;
        let begin = |to: To| {
            call("O_NONBLOCK", subject.set_nonblocking(true))?;
            let result = subject.connect_raw(&self.place.address(to));
            match result {
                Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
                other => Err(format!("connect() did not say EINPROGRESS but {other:?}")),
            }
        };
        match state {
            State::Bound => call("bind()", subject.bind_raw(&self.place.address(To::Own))),
            State::Listening => call("listen()", subject.listen(16)),
            State::ListenShut => {
                call("listen()", subject.listen(16))?;
                call("shutdown()", subject.shutdown(libc::SHUT_RDWR))
            }
            State::Pending => {
                call("listen()", subject.listen(16))?;
                let peer = call("socket()", self.network.client.socket(self.mode.peer))?;
                call("connect()", peer.connect(self.place.server))?;
                until("a connection waits", subject, POLLIN)?;
                self.peer = Some(peer);
                Ok(())
            }
            State::Connecting => begin(To::Silent),
            State::Refused => {
                begin(To::Closed)?;
                until("refused", subject, POLLERR | POLLHUP)
            }
            State::RefusedRead => {
                begin(To::Closed)?;
                until("refused", subject, POLLERR | POLLHUP)?;
                call("SO_ERROR", subject.take_error()).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn peer(&self) -> Result<&Sock, String> {
        self.peer.as_ref().ok_or_else(|| "there is no peer".into())
    }

    fn peer_sends(&self) -> Result<(), String> {
        call("send()", self.peer()?.send_all(&pattern(10)))?;
        until("ten bytes", &self.subject, POLLIN)
    }

    /// The peer sends and goes on at once: what it does next must not overtake the bytes.
    fn peer_resets(&mut self) -> Result<(), String> {
        call("SO_LINGER", self.peer()?.set_linger(true, 0))?;
        self.peer = None;
        until("reset", &self.subject, POLLERR | POLLHUP)
    }

    fn peer_closes(&mut self) -> Result<(), String> {
        self.peer = None;
        until("closed by the peer", &self.subject, POLLIN | POLLRDHUP)
    }

    fn shut(&self, how: i32) -> Result<(), String> {
        call("shutdown()", self.subject.shutdown(how))
    }

    /// Writes until nothing more goes, even after what was on its way has arrived.
    fn fill(&self) -> Result<(), String> {
        let mut still = 0;
        for _ in 0..200 {
            if self.call(&Call::Fill).starts_with("nothing") {
                still += 1;
            } else {
                still = 0;
            }
            if still == 4 {
                return until("data", self.peer()?, POLLIN);
            }
            pause(Duration::from_millis(30));
        }
        Err("the socket does not get full".into())
    }

    /// What happens after the connection is there.
    fn shape(&mut self, state: State) -> Result<(), String> {
        match state {
            State::Data => self.peer_sends()?,
            State::PeerShut | State::PeerShutData | State::BothShut => {
                if state == State::PeerShutData {
                    self.peer_sends()?;
                }
                if state == State::BothShut {
                    self.shut(libc::SHUT_WR)?;
                }
                call("shutdown()", self.peer()?.shutdown(libc::SHUT_WR))?;
                until("shut by the peer", &self.subject, POLLIN | POLLRDHUP)?;
            }
            State::ShutWr => self.shut(libc::SHUT_WR)?,
            State::ShutRd => self.shut(libc::SHUT_RD)?,
            State::ShutRdData => {
                self.peer_sends()?;
                self.shut(libc::SHUT_RD)?;
            }
            State::ShutBoth => self.shut(libc::SHUT_RDWR)?,
            State::PeerClosed => self.peer_closes()?,
            State::PeerClosedData => {
                self.peer_sends()?;
                self.peer_closes()?;
            }
            State::ShutPeerClosed => {
                self.shut(libc::SHUT_WR)?;
                until("the end", self.peer()?, POLLIN | POLLRDHUP)?;
                self.peer_closes()?;
            }
            State::PeerClosedUnread => {
                call("send()", self.subject.send_all(&pattern(10)))?;
                until("ten bytes", self.peer()?, POLLIN)?;
                self.peer = None;
                until("reset by close", &self.subject, POLLERR | POLLHUP)?;
            }
            _ => return self.shape_more(state),
        }
        Ok(())
    }

    fn shape_more(&mut self, state: State) -> Result<(), String> {
        match state {
            State::Reset => self.peer_resets(),
            State::ResetData => {
                self.peer_sends()?;
                self.peer_resets()
            }
            State::ResetRead => {
                self.peer_resets()?;
                call("SO_ERROR", self.subject.take_error()).map(drop)
            }
            State::Full => self.fill(),
            State::Urgent | State::UrgentInline => {
                if state == State::UrgentInline {
                    let on = self
                        .subject
                        .set_int(libc::SOL_SOCKET, libc::SO_OOBINLINE, 1);
                    call("SO_OOBINLINE", on)?;
                }
                call("send()", self.peer()?.send(b"abcd", 0))?;
                call("send()", self.peer()?.send(b"!", MSG_OOB))?;
                until("the urgent byte", &self.subject, POLLIN | POLLPRI)
            }
            State::Disconnected => {
                let nowhere: RawAddr = self.place.address(To::Unspec);
                call(
                    "connect() to no address",
                    self.subject.connect_raw(&nowhere),
                )
            }
            State::Client | State::Server => until("connected", &self.subject, POLLOUT),
            _ => Ok(()),
        }
    }
}
