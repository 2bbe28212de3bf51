// SPDX-License-Identifier: GPL-2.0

//! What sockets live on goes away: their network namespace, or the module.

use crate::race::{pause, run, socket, Race, PATIENCE};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use testlib::process::{enter_netns, spawn, Child};
use testlib::sock::{Family, Sock};

const PORT: u16 = 7500;

/// Namespaces with a veth pair and RDMA devices between them are deleted while connections run.
pub(crate) fn namespaces_deleted(race: &Race) {
    let mut rng = race.rng(0);
    while race.goes_on() {
        let result = make_namespaces().and_then(|()| {
            let ip = IpAddr::V4(Ipv4Addr::new(10, 9, 7, 1));
            let traffic = Traffic::start(("race1", "race2"), ip, 4)?;
            std::thread::sleep(Duration::from_millis(rng.range(100, 1500)));
            // The names go, the namespaces stay for as long as sockets refer to them.
            run("ip netns delete race1")?;
            pause(&mut rng, 100_000);
            if rng.one_in(2) {
                drop(traffic);
                run("ip netns delete race2")
            } else {
                run("ip netns delete race2")?;
                pause(&mut rng, 100_000);
                drop(traffic);
                Ok(())
            }
        });
        match result {
            Ok(()) => race.count(),
            Err(e) => race.fault(e),
        }
    }
}

fn make_namespaces() -> Result<(), String> {
    for line in [
        "ip netns add race1",
        "ip netns add race2",
        "ip link add veth7 netns race1 type veth peer name veth7 netns race2",
        "ip -n race1 address add 10.9.7.1/24 dev veth7",
        "ip -n race2 address add 10.9.7.2/24 dev veth7",
        "ip -n race1 link set lo up",
        "ip -n race1 link set veth7 up",
        "ip -n race2 link set veth7 up",
        "ip netns exec race1 rdma link add rxe7 type rxe netdev veth7",
        "rdma dev set rxe7 netns race1",
        "ip netns exec race2 rdma link add rxe8 type rxe netdev veth7",
        "rdma dev set rxe8 netns race2",
    ] {
        run(line)?;
    }
    Ok(())
}

/// Two processes whose connections carry bytes until they are killed.
struct Traffic(Vec<Child>);

impl Traffic {
    fn start(ns: (&str, &str), ip: IpAddr, connections: u16) -> Result<Traffic, String> {
        let of = |e: std::io::Error| format!("the test itself failed: {e}");
        let to = SocketAddr::new(ip, PORT);
        let (ready, say_ready) = testlib::process::pipe().map_err(of)?;
        let server = spawn(|| {
            let listener =
                enter_netns(ns.0).and_then(|()| Sock::listener(Family::Smc, ip, PORT, 64));
            match listener {
                Ok(listener) => {
                    let told = File::from(say_ready).write_all(b"r");
                    told.map_or(1, |()| accept_all(&listener))
                }
                Err(_) => 1,
            }
        })
        .map_err(of)?;
        // The child's copy is the only one left: its end shows here.
        File::from(ready)
            .read_exact(&mut [0])
            .map_err(|_| "the server did not start".to_owned())?;
        let client = spawn(|| {
            if enter_netns(ns.1).is_err() {
                return 1;
            }
            std::thread::scope(|s| {
                for _ in 0..connections {
                    s.spawn(|| send_for_ever(to));
                }
            });
            0
        })
        .map_err(of)?;
        Ok(Traffic(vec![server, client]))
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        for child in self.0.drain(..).rev() {
            // A child that cannot be killed is one that hangs, which the kernel reports.
            let _ = child.kill(libc::SIGKILL);
            let _ = child.wait(PATIENCE);
        }
    }
}

fn accept_all(listener: &Sock) -> i32 {
    while let Ok((sock, _)) = listener.accept(0) {
        std::thread::spawn(move || {
            let mut data = vec![0; 65536];
            while let Ok(n) = sock.recv(&mut data, 0) {
                if n == 0 || sock.send_all(&data[..n]).is_err() {
                    return;
                }
            }
        });
    }
    1
}

fn send_for_ever(to: SocketAddr) {
    let Ok(sock) = socket(Family::Smc, PATIENCE) else {
        return;
    };
    if sock.connect(to).is_err() {
        return;
    }
    let mut data = vec![1; 30_000];
    while sock.send_all(&data).is_ok() && sock.recv_exact(&mut data).is_ok() {}
}

/// The module is unloaded as soon as the last socket is closed.
pub(crate) fn module_unloaded(race: &Race) {
    let mut rng = race.rng(0);
    while race.goes_on() {
        let place = &race.place;
        let round =
            Traffic::start((&place.server_ns, &place.client_ns), place.ip, 4).and_then(|t| {
                std::thread::sleep(Duration::from_millis(rng.range(50, 800)));
                drop(t);
                let end = Instant::now() + PATIENCE;
                // It is in use until the last socket is gone.
                while let Err(e) = run("rmmod smc_rs") {
                    if Instant::now() > end {
                        return Err(format!(
                            "the module is still in use after {PATIENCE:?}: {e}"
                        ));
                    }
                }
                run("modprobe smc_rs")
            });
        match round {
            Ok(()) => race.count(),
            Err(e) => race.fault(e),
        }
    }
}
