# SPDX-License-Identifier: GPL-2.0
"""Ends of connections that stay as they are: run by smc_run.

server ADDRESS PORT   listens, accepts one client, and leaves its end open whatever that does
stay ADDRESS PORT     a client that leaves its end open, too
shut ADDRESS PORT     one that ends its direction
close ADDRESS PORT    one that closes
"""
import socket
import sys
import time

role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
end = socket.socket()
if role == "server":
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    end.bind((address, port))
    end.listen(5)
    client, _ = end.accept()
else:
    end.connect((address, port))
    if role == "shut":
        end.shutdown(socket.SHUT_WR)
    elif role == "close":
        end.close()
time.sleep(1000)
