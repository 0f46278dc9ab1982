"""served.py PORT SERVER COMMAND...: COMMAND while SERVER, one word for a shell, serves PORT."""

import shlex
import socket
import subprocess
import sys
import time

port, server, command = int(sys.argv[1]), shlex.split(sys.argv[2]), sys.argv[3:]
running = subprocess.Popen(server, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
for _ in range(200):
    with socket.socket() as s:
        if s.connect_ex(("127.0.0.1", port)) == 0:
            break
    time.sleep(0.05)
try:
    status = subprocess.run(command, check=False).returncode
finally:
    running.terminate()
    running.wait(10)
sys.exit(status)
