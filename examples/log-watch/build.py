"""A build of ten seconds: 200 files, one of which does not compile. It goes on, and fails in the end."""

import sys
import time

FILES, BROKEN, SECONDS = 200, 30, 0.05

for number in range(1, FILES + 1):
    time.sleep(SECONDS)
    print(f"[{number}/{FILES}] cc -O2 -c src/file_{number:03}.c", flush=True)
    if number == BROKEN:
        print(f"src/file_{number:03}.c:7:5: error: unknown type name 'size'", flush=True)
print("make: *** [all] Error 2", flush=True)
sys.exit(2)
