/// How the page looks, and what shows the values under the pointer.
enum ReportStyle {
    static let css = """
        :root { color-scheme: light dark; --ink: #1d2730; --soft: #53616e; --ground: #fff; --rule: #e3e8ec; --field: #fafbfc; \
        --edge: #d5dce2; --grid: #e6ebef; --zero: #aeb8c1; --note: #fdf5df; --note-edge: #d8a526; --link: #1f5fa8; \
        --good: #23723a; --fair: #8a6d00; --poor: #b8560b; --bad: #b5261c; \
        --lost: #c8372d; --late: #e8902f; --senderStalled: #8b4fb3; --drift: #1f9a86; --xrun: #2b5fa8; --discarded: #7d868f; \
        --noDecoder: #b0487c; --unknown: #a3a9af; --recovered: #3b8f4d; --arrival: #8fb4d9; --target: #d08a1d; \
        --delay: #1f5fa8; --concealed: #7a4fa3; --added: #2f8f8a; --taken: #a8803a; --level: #5a6b7b; --mos: #23723a; \
        --e-xrun: #2b5fa8; --e-sourceChange: #c8372d; --e-restart: #8b4fb3; --e-jump: #e8902f; --e-codecChange: #1f9a86; \
        --e-marker: #9aa7b3; }
        @media (prefers-color-scheme: dark) { :root { --ink: #dde4ea; --soft: #9caab6; --ground: #14191e; --rule: #2b343c; \
        --field: #1a2026; --edge: #35404a; --grid: #262e36; --zero: #55626e; --note: #2e2915; --note-edge: #b98d1c; \
        --link: #7db4ef; --good: #6fca8a; --fair: #e0c04d; --poor: #f0a05a; --bad: #ff7b70; --lost: #ec6a60; \
        --late: #f0a44e; --senderStalled: #b98ade; --drift: #3fc2ac; --xrun: #6c9fe6; --discarded: #98a2ac; \
        --noDecoder: #dd86b2; --unknown: #7e868e; --recovered: #62bd76; --arrival: #4f7298; --target: #e5a94a; \
        --delay: #6fb0f5; --concealed: #b18ad8; --added: #56bdb7; --taken: #cfa961; --level: #94a5b5; --mos: #6fca8a; \
        --e-xrun: #6c9fe6; --e-sourceChange: #ec6a60; --e-restart: #b98ade; --e-jump: #f0a44e; --e-codecChange: #3fc2ac; \
        --e-marker: #65727e; } }
        body { font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: var(--ink); background: var(--ground); \
        max-width: 1060px; margin: 1.5rem auto 3rem; padding: 0 1rem; }
        h1, h2.verdict { font-size: 1.15rem; margin: 0 0 .3rem; font-weight: 400; overflow-wrap: anywhere; }
        h2.verdict { margin-top: 3rem; padding-top: 1.5rem; border-top: 2px solid var(--edge); }
        .verdict b { font-size: 1.5rem; } .verdict span { white-space: nowrap; display: inline-block; }
        h3 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; } .file, .soft { color: var(--soft); margin: 0 0 .4rem; }
        .good { color: var(--good); } .fair { color: var(--fair); } .poor { color: var(--poor); } .bad { color: var(--bad); }
        .notes { background: var(--note); border-left: 3px solid var(--note-edge); padding: .5rem .8rem .5rem 1.8rem; }
        table { border-collapse: collapse; margin: .4rem 0; } th { text-align: left; font-weight: 600; }
        td, th { padding: .18rem 1.2rem .18rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
        .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } code { font-size: .85em; }
        .tables { display: flex; flex-wrap: wrap; gap: 0 3rem; align-items: flex-start; }
        .cause { white-space: nowrap; }
        i { display: inline-block; width: .7em; height: .7em; margin-right: .4em; border-radius: 2px; }
        figure { margin: 0 0 .9rem; } figcaption { font-size: .9rem; }
        figcaption span { margin-left: 1.1rem; color: var(--soft); white-space: nowrap; }
        figure div { position: relative; } output { position: absolute; right: 0; bottom: 100%; padding-left: .6rem; \
        font-size: .9rem; font-variant-numeric: tabular-nums; background: var(--ground); pointer-events: none; }
        svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: var(--soft); }
        .field { fill: var(--field); stroke: var(--edge); } .grid { stroke: var(--grid); } .zero { stroke: var(--zero); }
        .at { stroke: var(--ink); stroke-width: .7; } .band { fill: currentColor; opacity: .35; }
        path.line, path.peaks { fill: none; stroke: currentColor; stroke-width: 1.4; } path.bars { fill: currentColor; }
        path.dots { fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; }
        summary { cursor: pointer; color: var(--link); margin-top: .4rem; }
        """

    /// Reads the values back from the paths, so that they are on the page once.
    static let script = """
        for (const leg of document.querySelectorAll("section")) {
          const L = \(Int(Plot.left)), W = \(Int(Plot.plotWidth)), T = \(Int(Plot.top)), H = \(Int(Plot.plotHeight));
          const plots = [...leg.querySelectorAll("svg")].map(svg => ({ svg, at: svg.querySelector(".at"), \
        out: svg.parentNode.querySelector("output"), paths: [...svg.querySelectorAll("path")] }));
          const points = path => path.points ??= [...path.getAttribute("d").matchAll(path.classList.contains("bars") \
        ? /(M)([\\d.]+) [\\d.]+V([\\d.]+)/g : /([ML])([\\d.]+) ([\\d.]+)(?:V([\\d.]+))?/g)] \
        .map(m => [+m[2], +m[3], m[1] == "L", +(m[4] ?? m[3])]);
          const number = v => Math.abs(v) < 100 ? +v.toFixed(Math.abs(v) < 10 ? 2 : 1) : Math.round(v);
          const value = (path, x, data) => {
            const isBar = path.classList.contains("bars"), w = isBar ? Math.max(+data.w, 1) : 4, list = points(path);
            const real = y => number(+data.hi - (y - T) / H * (data.hi - data.lo));
            const next = list.findIndex(p => p[0] > x), [a, b] = [list[next - 1], list[next]];
            if (!isBar && next > 0 && b[2]) return real(a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]));
            let best = null;
            for (const p of list) {
              const off = isBar ? (Math.floor((p[0] - L + .01) / w) == Math.floor((x - L) / w) ? 0 : w) : Math.abs(p[0] - x);
              if (off < w && (!best || off < best[0])) best = [off, p];
            }
            if (!best) return isBar ? 0 : "–";
            const [low, high] = [real(best[1][3]), real(best[1][1])];
            return low == high ? high : low + " to " + high;
          };
          leg.addEventListener("pointermove", event => {
            const svg = event.target.closest("svg");
            if (!svg) return;
            const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * \(Int(Plot.width));
            if (x < L || x > L + W) return;
            const seconds = (x - L) / W * svg.dataset.d, start = leg.dataset.start;
            const clock = start ? new Date(+start + seconds * 1000).toISOString().slice(11, 23) + " UTC, " : "";
            const time = seconds < 60 ? seconds.toFixed(2) + " s" \
        : Math.floor(seconds / 60) + ":" + (seconds % 60).toFixed(2).padStart(5, "0");
            for (const { svg, at, out, paths } of plots) {
              at.setAttribute("x1", x); at.setAttribute("x2", x);
              out.textContent = clock + time + paths.map(path => \
        "; " + path.dataset.n + " " + value(path, x, svg.dataset)).join("");
            }
          });
        }
        """
}
