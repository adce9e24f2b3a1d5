# The agent runs on a worker; this shell is the person, who could answer days later, on any machine.
set -e
asked() { until fdstore questions change --json | grep -q "$1"; do sleep 0.2; done; }

fdstore up > up.log 2>&1
fdstore run change.toml --name change --detach > run.log 2>&1
asked "Which machines"
fdstore ps change | tail -n +2 | grep -o 'waits for a person'
fdstore questions change | grep '|'
fdstore answer change --choice 3 --as ann

asked deploy
fdstore questions change | grep '  |'
fdstore answer change --yes --arguments '{"version": 41, "machines": "half"}' --as bob

fdstore attach change --quiet
fdstore log change | grep -o 'a[a-z]* by [a-z]* (cli).*'
