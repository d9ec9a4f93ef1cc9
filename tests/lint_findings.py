"""Read the text of `snakemake --lint`; fail on any finding but those named as arguments."""

import sys

findings = []
place = ""
for line in sys.stdin:
    if line.startswith("Lints for"):
        place = line.strip().removeprefix("Lints for ").rstrip(":")
    elif line.startswith("    * "):
        findings.append((place, line.strip(" *\n")))
    elif "Error" in line:
        findings.append(("the workflow", line.strip()))
rest = [f for f in findings if not any(f[1].startswith(known) for known in sys.argv[1:])]
for place, finding in rest:
    print(f"{place}: {finding}", file=sys.stderr)
sys.exit(1 if rest else 0)
