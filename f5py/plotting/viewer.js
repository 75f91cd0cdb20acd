(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const canvas = document.getElementById("signal"), overview = document.getElementById("overview");
  const where = document.getElementById("where");
  const first = data.first, end = first + data.current.length;
  const LEFT = 56, RIGHT = 22, TOP = 18, STRIP = 24, CALLS = data.calls ? 20 : 0, BOTTOM = 38, NARROWEST = 20;
  const unit = data.seconds ? 1 / data.rate : 1;
  const extremes = data.limits;

  // Where there are several samples to a pixel, a column from their smallest to their largest stands for them.
  function trace(pen, from, to, x, y) {
    const low = Math.max(Math.floor(from) - first, 0), high = Math.min(Math.ceil(to) - first, data.current.length);
    const step = Math.max(Math.floor((high - low) / 4000), 1);
    pen.beginPath();
    for (let i = low; i < high; i += step) {
      let smallest = Infinity, largest = -Infinity;
      for (let j = i; j < Math.min(i + step, high); j++) {
        smallest = Math.min(smallest, data.current[j]);
        largest = Math.max(largest, data.current[j]);
      }
      const across = x(first + i + step / 2);
      if (i === low) pen.moveTo(across, y(smallest)); else pen.lineTo(across, y(smallest));
      if (largest > smallest) pen.lineTo(across, y(largest));
    }
    pen.stroke();
  }

  function geometry() {
    const width = canvas.clientWidth - LEFT - RIGHT, top = TOP + CALLS + STRIP;
    const height = canvas.clientHeight - top - BOTTOM;
    const scale = nav.scale(), view = nav.view;
    return {
      top, height, width, scale,
      x: (sample) => LEFT + (sample - view[0]) * scale,
      y: (current) => top + (extremes[1] - current) / (extremes[1] - extremes[0]) * height,
      sample: nav.at,
    };
  }

  function draw() {
    const { pen } = prepared(canvas), g = geometry(), view = nav.view, bottom = g.top + g.height;
    const e0 = Math.max(above(data.events.start, view[0]) - 1, 0), e1 = above(data.events.start, view[1]);
    pen.textBaseline = "middle";
    pen.fillStyle = pen.strokeStyle = colour("line");
    pen.textAlign = "right";
    for (const current of ticks(extremes[0], extremes[1], g.height / 45).found) {
      pen.fillStyle = colour("line");
      pen.fillRect(LEFT, g.y(current), g.width, 1);
      pen.fillStyle = colour("soft");
      pen.fillText(current, LEFT - 6, g.y(current));
    }
    pen.textAlign = "center";
    const times = ticks(view[0] * unit, view[1] * unit, g.width / 90);
    const plain = { minimumFractionDigits: times.digits, maximumFractionDigits: times.digits };
    across(pen, times.found.map((time) => [g.x(time / unit), time.toLocaleString("en", plain)]), bottom + 12,
      canvas.clientWidth);
    pen.textAlign = "center";
    pen.fillText(data.axis, LEFT + g.width / 2, bottom + 28);
    pen.save();
    pen.translate(12, g.top + g.height / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText("current (pA)", 0, 0);
    pen.restore();

    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, g.width, bottom);
    pen.clip();
    drawKmers(pen, g);
    pen.lineWidth = 1;
    pen.strokeStyle = colour("signal");
    trace(pen, view[0], view[1], g.x, g.y);
    for (let i = e0; i < e1; i++) {
      const start = g.x(data.events.start[i]), stop = g.x(data.events.start[i] + data.events.length[i]);
      pen.fillStyle = colour(data.events.kmer[i] < 0 ? "unaligned" : data.events.bad[i] ? "bad" : "event");
      pen.fillRect(start, g.y(data.events.mean[i]) - 1, Math.max(stop - start, 1), 2);
      if (g.scale > 1) {
        pen.globalAlpha = 0.25;
        pen.fillRect(start, g.top, 1, g.height);
        pen.globalAlpha = 1;
      }
    }
    if (data.calls) drawCalls(pen, g);
    pen.restore();
    pen.textAlign = "right";
    pen.fillStyle = colour("soft");
    pen.fillText("bases", LEFT - 6, TOP + CALLS + STRIP / 2);
    if (data.calls) pen.fillText("calls", LEFT - 6, TOP + CALLS / 2);
    drawOverview();
    where.textContent = placeWords();
  }

  function drawKmers(pen, g) {
    const view = nav.view, starts = data.kmers.start, k0 = Math.max(above(starts, view[0]) - 1, 0), k1 = above(starts, view[1]);
    const room = g.width / Math.max(k1 - k0, 1), bottom = g.top + g.height;
    let labelled = -Infinity;
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((one) => one * room > 70) || 10000;
    for (let i = k0; i < k1; i++) {
      const from = g.x(starts[i]), to = g.x(data.kmers.end[i]), centre = (Math.max(from, LEFT) + Math.min(to, LEFT + g.width)) / 2;
      const letter = data.kmers.letter[i], position = data.kmers.position[i] + 1;
      if (data.kmers.gap[i]) {
        pen.fillStyle = colour("bad");
        pen.fillRect(from, TOP + CALLS, 1, STRIP + g.height);
      }
      if (to > from) {
        pen.fillStyle = colour("band");
        const high = g.y(data.kmers.level[i] + data.kmers.stdv[i]), low = g.y(data.kmers.level[i] - data.kmers.stdv[i]);
        pen.fillRect(from, high, to - from, low - high);
        pen.fillStyle = colour("model");
        pen.fillRect(from, g.y(data.kmers.level[i]) - 0.75, to - from, 1.5);
        pen.fillStyle = colour("ACGT".includes(letter) ? letter : letter === "U" ? "T" : "soft");
        if (to - from >= 9) {
          pen.font = "bold 13px system-ui, sans-serif";
          pen.textAlign = "center";
          pen.fillText(letter, centre, TOP + CALLS + STRIP / 2);
        } else pen.fillRect(from, TOP + CALLS + 5, Math.max(to - from - 0.3, 0.5), STRIP - 10);
      } else if (room >= 9) {
        pen.fillStyle = colour("soft");
        pen.fillRect(from - 0.5, TOP + CALLS + STRIP - 6, 1, 6);
      }
      if (position % step === 0 && centre - labelled > 60) { // also of a k-mer without events
        pen.font = "12px system-ui, sans-serif";
        pen.textAlign = "center";
        pen.fillStyle = colour("soft");
        const text = position.toLocaleString("en"), half = pen.measureText(text).width / 2;
        if (centre - half < LEFT || centre + half > LEFT + g.width) continue;
        pen.fillText(text, centre, TOP / 2);
        labelled = centre;
      }
    }
    pen.font = "12px system-ui, sans-serif";
    pen.strokeStyle = colour("line");
    pen.strokeRect(LEFT + 0.5, g.top + 0.5, g.width - 1, bottom - g.top - 1);
  }

  function drawCalls(pen, g) {
    data.calls.ratio.forEach((ratio, i) => {
      const from = g.x(data.calls.start[i]), to = g.x(data.calls.end[i]);
      if (to < LEFT || from > LEFT + g.width) return;
      pen.globalAlpha = Math.abs(ratio) >= data.threshold ? 1 : 0.35;
      pen.fillStyle = colour(ratio > 0 ? "methylated" : "plain");
      pen.fillRect(from, TOP + 2, Math.max(to - from, 2), CALLS - 5);
      if (to - from > 36) {
        pen.globalAlpha = 1;
        pen.fillStyle = Math.abs(ratio) >= data.threshold ? colour("card") : colour("ink");
        pen.textAlign = "center";
        pen.fillText(ratio.toFixed(1), (Math.max(from, LEFT) + Math.min(to, LEFT + g.width)) / 2, TOP + CALLS / 2);
      }
      pen.globalAlpha = 1;
    });
  }

  function drawOverview() {
    const { pen, width, height } = prepared(overview), inner = width - LEFT - RIGHT, view = nav.view;
    const x = (sample) => LEFT + (sample - first) / (end - first) * inner;
    pen.strokeStyle = colour("signal");
    trace(pen, first, end, x, (current) => (extremes[1] - current) / (extremes[1] - extremes[0]) * height);
    pen.fillStyle = colour("shade");
    pen.fillRect(x(view[0]), 0, Math.max(x(view[1]) - x(view[0]), 3), height);
    pen.strokeStyle = colour("plain");
    pen.strokeRect(x(view[0]) + 0.5, 0.5, Math.max(x(view[1]) - x(view[0]), 3), height - 1);
  }

  function placeWords() {
    const view = nav.view, starts = data.kmers.start, k0 = Math.max(above(starts, view[0]) - 1, 0);
    const k1 = Math.max(above(starts, view[1]) - 1, k0);
    const ends = [data.kmers.position[k0] + 1, data.kmers.position[k1] + 1].sort((a, b) => a - b);
    return `positions ${ends[0].toLocaleString("en")} to ${ends[1].toLocaleString("en")}`;
  }

  // Samples around a position of the reference.
  function place(from, to) {
    const at = (position) => {
      let nearest = 0;
      data.kmers.position.forEach((one, i) => {
        if (Math.abs(one - position) < Math.abs(data.kmers.position[nearest] - position)) nearest = i;
      });
      return data.kmers.start[nearest];
    };
    const ends = [at(from), at(to)].sort((a, b) => a - b);
    return [ends[0], ends[1]];
  }

  function words(x, y) {
    const g = geometry(), sample = g.sample(x);
    if (x < LEFT || x > LEFT + g.width) return "";
    if (data.calls && y >= TOP && y < TOP + CALLS) {
      const i = data.calls.start.findIndex((start, j) => start <= sample && sample < data.calls.end[j]);
      return i < 0 ? "" : data.calls.words[i];
    }
    if (y < g.top) {
      const i = above(data.kmers.start, sample) - 1;
      for (let j = i; j >= 0 && j > i - 50; j--)
        if (sample < data.kmers.end[j]) return kmerWords(j);
      return "";
    }
    const i = above(data.events.start, sample) - 1;
    if (i < 0 || y > g.top + g.height) return "";
    const length = data.events.length[i], kmer = data.events.kmer[i];
    return `event ${data.events.index[i]}${data.events.bad[i] ? " (fits no k-mer)" : ""}\n` +
      `mean ${data.events.mean[i].toFixed(2)} pA, stdv ${data.events.stdv[i].toFixed(2)} pA\n` +
      `${length} samples from ${data.events.start[i]} on, ${(1000 * length / data.rate).toFixed(2)} ms\n` +
      (kmer < 0 ? "aligned to no k-mer" : kmerWords(kmer));
  }

  function kmerWords(i) {
    return `k-mer ${data.kmers.kmer[i]} at position ${(data.kmers.position[i] + 1).toLocaleString("en")}\n` +
      `expected ${data.kmers.level[i].toFixed(2)} \u00b1 ${data.kmers.stdv[i].toFixed(2)} pA`;
  }

  function jump(event) {
    if (event.type === "pointermove" && !event.buttons) return;
    const inner = overview.clientWidth - LEFT - RIGHT, span = nav.view[1] - nav.view[0];
    const middle = first + (event.offsetX - LEFT) / inner * (end - first);
    nav.look(middle - span / 2, middle + span / 2);
  }
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); jump(event); });
  overview.addEventListener("pointermove", jump);
  const nav = navigated(canvas, { first, end, narrowest: NARROWEST, left: LEFT, right: RIGHT, draw, words, place });
  nav.look(first, end);
})();
