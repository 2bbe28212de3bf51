// SPDX-License-Identifier: GPL-2.0

//! The table of sockets.

use std::fmt::Write;
use std::net::SocketAddr;

use smc_netlink::diag::{Connection, Cursor, Details, Mode, Socket, State};

/// Width of an address where it is not to be longer.
const ADDRESS: usize = 23;

/// Which sockets are shown, and what of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// All, also those that are not connected.
    pub all: bool,
    /// Those that accept connections.
    pub listening: bool,
    /// Cursors and flags.
    pub debug: bool,
    /// Addresses as long as they are.
    pub wide: bool,
    /// Those over SMC-D, with their buffers.
    pub smcd: bool,
    /// Those over SMC-R, with their links.
    pub smcr: bool,
}

impl View {
    /// What has to be asked for.
    pub fn details(self) -> Details {
        Details {
            cursors: self.debug,
            link: self.smcr,
            shared_memory: self.smcd,
        }
    }

    /// Whether a socket is shown.
    pub fn shows(self, socket: &Socket) -> bool {
        let state = socket.state;
        let by_state = if self.listening {
            state == State::LISTEN
        } else {
            self.all || (state != State::LISTEN && state != State::INIT)
        };
        by_state
            && (!self.smcr || socket.mode == Mode::Rdma)
            && (!self.smcd || socket.mode == Mode::SharedMemory)
    }

    /// The table.
    pub fn text(self, sockets: &[Socket]) -> String {
        let mut out = self.header();
        for socket in sockets.iter().filter(|socket| self.shows(socket)) {
            self.row(&mut out, socket);
            out.push('\n');
        }
        out
    }

    fn header(self) -> String {
        let mut out = String::from(
            "State          UID   Inode   Local Address           Peer Address            Intf Mode ",
        );
        if self.debug {
            out.push_str(
                "Shutd Token    Sndbuf   Rcvbuf   Peerbuf  rxprod-Cursor rxcons-Cursor rxFlags \
                 txprod-Cursor txcons-Cursor txFlags txprep-Cursor txsent-Cursor txfin-Cursor  ",
            );
        }
        if self.smcr {
            let _ = write!(
                out,
                "Role IB-device       Port Linkid {:<40} Peer-GID",
                "GID"
            );
        }
        if self.smcd {
            out.push_str(
                "GID              Token            Peer-GID         Peer-Token       Linkid",
            );
        }
        out.push('\n');
        out
    }

    /// A row ends where there is nothing more to say about the state. Writing to a string does not
    /// fail.
    fn row(self, out: &mut String, socket: &Socket) {
        let state = socket.state;
        let _ = write!(
            out,
            "{:<14} {:05} {:07} ",
            state.name(),
            socket.uid,
            socket.inode
        );
        if state == State::INIT {
            return;
        }
        let _ = write!(out, "{:<ADDRESS$} ", self.address(socket.local));
        if state == State::LISTEN {
            return;
        }
        let _ = write!(out, "{:<ADDRESS$} ", self.address(socket.peer));
        let _ = write!(out, "{:04x} ", socket.interface);
        if state == State::CLOSED {
            return;
        }
        match socket.mode {
            Mode::Tcp => {
                let _ = write!(out, "TCP 0x{:08x}", socket.fallback.0);
                if socket.peer_diagnosis.is_some() {
                    let _ = write!(out, "/0x{:08x}", socket.peer_diagnosis.0);
                }
                return;
            }
            Mode::Rdma => out.push_str("SMCR "),
            Mode::SharedMemory => out.push_str("SMCD "),
        }
        self.row_details(out, socket);
    }

    fn row_details(self, out: &mut String, socket: &Socket) {
        if self.debug {
            let receives = if socket.shutdown & 1 != 0 { 'R' } else { '<' };
            let sends = if socket.shutdown & 2 != 0 { 'W' } else { '>' };
            let _ = write!(out, " {receives}-{sends}  ");
            if let Some(connection) = &socket.connection {
                cursors(out, connection);
            }
        }
        if let (true, Some(link)) = (self.smcr, &socket.link) {
            let role = if link.server { "SERV" } else { "CLNT" };
            let _ = write!(
                out,
                "{role} {:<15} {:02x}   {:02x}     {:<40} {}",
                link.device, link.port, link.link_id, link.gid, link.peer_gid
            );
        }
        if let (true, Some(memory)) = (self.smcd, &socket.shared_memory) {
            let _ = write!(
                out,
                "{:016x} {:016x} {:016x} {:016x} {:08x} ",
                memory.gid, memory.token, memory.peer_gid, memory.peer_token, memory.link_id
            );
        }
    }

    /// An address with its port; a long one is cut before the port, which two dots say.
    fn address(self, address: SocketAddr) -> String {
        let port = address.port().to_string();
        let mut ip = address.ip().to_string();
        if !self.wide && ip.len() + 1 + port.len() > ADDRESS {
            ip.truncate(ADDRESS.saturating_sub(port.len() + 3));
            ip.push_str("..");
        }
        format!("{ip}:{port}")
    }
}

fn cursors(out: &mut String, connection: &Connection) {
    let cursor = |cursor: Cursor| format!("{:04x}:{:08x}", cursor.wrap, cursor.count);
    let flags = |producer: u8, end: u8| format!("{producer:02x}:{end:02x}");
    let _ = write!(
        out,
        "{:08x} {:08x} {:08x} {:08x} {} {} {}   {} {} {}   {} {} {} ",
        connection.token,
        connection.sndbuf_size,
        connection.rmbe_size,
        connection.peer_rmbe_size,
        cursor(connection.rx_prod),
        cursor(connection.rx_cons),
        flags(connection.rx_prod_flags, connection.rx_conn_flags),
        cursor(connection.tx_prod),
        cursor(connection.tx_cons),
        flags(connection.tx_prod_flags, connection.tx_conn_flags),
        cursor(connection.tx_prep),
        cursor(connection.tx_sent),
        cursor(connection.tx_fin),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use smc_netlink::diag::LinkInfo;
    use smc_netlink::Reason;

    fn socket(state: u8, mode: Mode) -> Socket {
        Socket {
            state: State(state),
            mode,
            local: "192.0.2.7:9000".parse().expect("an address"),
            peer: "192.0.2.9:51404".parse().expect("an address"),
            interface: 0,
            cookie: 1,
            uid: 1000,
            inode: 4711,
            shutdown: 0,
            fallback: Reason(0),
            peer_diagnosis: Reason(0),
            connection: None,
            link: None,
            shared_memory: None,
        }
    }

    fn rows(view: View, sockets: &[Socket]) -> Vec<String> {
        let text = view.text(sockets);
        text.lines().skip(1).map(ToOwned::to_owned).collect()
    }

    #[test]
    fn columns_stand_where_scripts_look_for_them() {
        let mut fallback = socket(1, Mode::Tcp);
        fallback.fallback = Reason(0x0500_0000);
        fallback.peer_diagnosis = Reason(0x0303_0000);
        let sockets = [socket(1, Mode::Rdma), fallback];
        assert_eq!(
            rows(View::default(), &sockets),
            [
                "ACTIVE         01000 0004711 192.0.2.7:9000          192.0.2.9:51404         0000 SMCR ",
                "ACTIVE         01000 0004711 192.0.2.7:9000          192.0.2.9:51404         0000 TCP 0x05000000/0x03030000",
            ]
        );
    }

    #[test]
    fn options_choose_sockets() {
        let sockets = [
            socket(2, Mode::Rdma),
            socket(10, Mode::Rdma),
            socket(1, Mode::Rdma),
            socket(1, Mode::Tcp),
        ];
        let count = |view| rows(view, &sockets).len();
        let view = View::default();
        assert_eq!(count(view), 2);
        assert_eq!(count(View { all: true, ..view }), 4);
        assert_eq!(
            count(View {
                listening: true,
                ..view
            }),
            1
        );
        assert_eq!(count(View { smcr: true, ..view }), 1);
        assert_eq!(count(View { smcd: true, ..view }), 0);
    }

    #[test]
    fn long_addresses_are_cut_unless_wide() {
        let mut long = socket(1, Mode::Rdma);
        long.local = "[2001:db8:1111:2222:3333:4444:5555:6666]:51404"
            .parse()
            .expect("an address");
        let view = View::default();
        assert!(rows(view, &[long.clone()])[0].contains(" 2001:db8:1111:2..:51404 "));
        let wide = View { wide: true, ..view };
        assert!(rows(wide, &[long])[0].contains(" 2001:db8:1111:2222:3333:4444:5555:6666:51404 "));
    }

    #[test]
    fn details_follow() {
        let mut detailed = socket(1, Mode::Rdma);
        detailed.link = Some(LinkInfo {
            link_id: 1,
            device: "rxe0".to_owned(),
            port: 1,
            gid: "a".to_owned(),
            peer_gid: "b".to_owned(),
            server: true,
        });
        detailed.connection = Some(Connection {
            token: 0xabc,
            ..Connection::default()
        });
        let view = View {
            debug: true,
            smcr: true,
            ..View::default()
        };
        let row = &rows(view, &[detailed])[0];
        assert!(row.contains("SMCR  <->  00000abc 00000000 "), "{row}");
        assert!(
            row.contains("0000:00000000 SERV rxe0            01   01     a  "),
            "{row}"
        );
        assert!(row.ends_with(" b"), "{row}");
    }
}
