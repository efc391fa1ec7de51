#!/usr/bin/env python3
"""How fast the terminal program is, measured on a pseudo-terminal: the time to its first picture, the time from a key to its
echo while an answer of one megabyte streams, whether an answer costs more the longer it is, and what the program takes of the
processor while nothing happens. Usage: latency.py PAL"""

import fcntl, os, pty, random, re, select, signal, struct, subprocess, sys, tempfile, termios, time

FIRST_PAINT_MS, ECHO_MS, IDLE_SHARE, GROWTH_MS = 60, 16, 0.01, 150


def main(pal):
    work = tempfile.mkdtemp()
    os.makedirs(work + "/project")
    words = "word " * 18
    answer = "".join(f"Paragraph {n}. {words}\n\n" for n in range(10_000))
    with open(work + "/script.toml", "w") as script:
        script.write('[default]\ntext = """\n' + answer + '"""\n')
    port = random.randint(20_000, 40_000)
    simulator = subprocess.Popen(
        [pal, "sim", "--port", str(port), "--speed", "virtual", "--model-script", work + "/script.toml"],
        stdout=subprocess.DEVNULL)
    time.sleep(1)
    environment = dict(os.environ, PAL_EXTRACTION="false", PAL_HOME=work + "/home", HOME=work, ANTHROPIC_API_KEY="x", TERM="xterm-256color",
                       ANTHROPIC_BASE_URL=f"http://127.0.0.1:{port}")
    paints = [first_paint(pal, environment, work) for _ in range(5)]
    echoes, bytes_seen, idle, spent = echo(pal, environment, work)
    simulator.send_signal(signal.SIGINT)
    echoes.sort()
    print(f"first paint: {min(paints):.0f} ms at best, {sorted(paints)[2]:.0f} ms usually (at most {FIRST_PAINT_MS})")
    print(f"key to echo while {bytes_seen / 1e6:.1f} MB stream: {echoes[len(echoes) // 2]:.1f} ms usually, "
          f"{echoes[int(len(echoes) * 0.95)]:.1f} ms in 95 of 100, {echoes[-1]:.1f} ms at worst of {len(echoes)} (at most {ECHO_MS})")
    first, second = by_half(spent)
    print(f"processor time of the terminal's thread: {first:.0f} ms for the first half of the answer, {second:.0f} ms for the second "
          f"(at most {GROWTH_MS} ms more)")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; the times hold for one that does nothing else")
    print(f"idle: {idle * 100:.2f} % of a processor (at most {IDLE_SHARE * 100:.0f} %)")
    good = min(paints) <= FIRST_PAINT_MS and echoes[int(len(echoes) * 0.95)] <= ECHO_MS and idle <= IDLE_SHARE and second - first <= GROWTH_MS
    return 0 if good else 1


def start(pal, environment, work):
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(work + "/project")
        os.execve(pal, [pal], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    return child, terminal


def read(terminal, timeout):
    ready, _, _ = select.select([terminal], [], [], timeout)
    return os.read(terminal, 1 << 16) if ready else b""


def end(child, terminal):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(terminal)


def first_paint(pal, environment, work):
    begun = time.monotonic()
    child, terminal = start(pal, environment, work)
    seen = b""
    while "›".encode() not in seen:
        seen += read(terminal, 5)
    took = (time.monotonic() - begun) * 1e3
    end(child, terminal)
    return took


def ticks(of):
    fields = open(f"/proc/{of}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def spent_by_terminal(child):
    """Milliseconds on a processor of the thread that draws."""
    return ticks(f"{child}/task/{child}") * 1e3 / os.sysconf("SC_CLK_TCK")


def by_half(spent):
    """Milliseconds that each half of the answer took."""
    middle = min(spent, key=lambda sample: abs(sample[0] - spent[-1][0] / 2))
    share = spent[-1][0] / 2 / max(middle[0], 1)
    first = (middle[1] - spent[0][1]) * share
    return first, spent[-1][1] - spent[0][1] - first


def echo(pal, environment, work):
    child, terminal = start(pal, environment, work)
    seen = b""
    while b"Palimpsest" not in seen:
        seen += read(terminal, 5)
    time.sleep(1)
    before, begun = ticks(child), time.monotonic()
    while time.monotonic() - begun < 3:
        read(terminal, 0.1)
    idle = (ticks(child) - before) / os.sysconf("SC_CLK_TCK") / 3
    os.write(terminal, b"go\r")
    total, echoes, typed, spent = 0, [], "", [(0, spent_by_terminal(child))]
    while b"Paragraph" not in seen:
        seen = read(terminal, 5)
    last = time.monotonic()
    while time.monotonic() - last < 1.5 and len(echoes) < 200:
        typed += random.choice("abcdefghijklmnopqrstuvwxyz")
        typed = typed[-40:] if len(typed) < 60 else typed
        begun = time.monotonic()
        os.write(terminal, typed[-1:].encode())
        seen = b""
        while True:
            piece = read(terminal, 2)
            if not piece:
                break
            total += len(piece)
            seen += piece
            if b"Paragraph" in piece:
                last = time.monotonic()
            # What is typed stands at the end of a frame.
            plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen[-4_000:])
            if typed[-6:].encode() in plain:
                echoes.append((time.monotonic() - begun) * 1e3)
                break
        paragraphs = [int(number) for number in re.findall(rb"Paragraph (\d+)", seen)]
        if paragraphs and max(paragraphs) > spent[-1][0]:
            spent.append((max(paragraphs), spent_by_terminal(child)))
        # A person types no faster.
        until = time.monotonic() + 0.03
        while time.monotonic() < until:
            piece = read(terminal, 0.01)
            total += len(piece)
            if b"Paragraph" in piece:
                last = time.monotonic()
    end(child, terminal)
    return echoes, total, idle, spent


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
