(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const canvas = document.getElementById("pileup"), where = document.getElementById("where");
  const n_bases = data.end - data.start, [low, high] = data.limits, single = data.samples.length < 2;
  const LEFT = 56, RIGHT = 22, TITLE = 24, STRIP = 20, PANEL = 240, AXIS = 40;
  const tops = data.strands.map((_, i) => i * (TITLE + STRIP + PANEL) + TITLE), bottom = tops.length * (TITLE + STRIP + PANEL);
  canvas.style.height = bottom + AXIS + "px";
  const nav = navigated(canvas, {
    first: data.start, end: data.end, narrowest: Math.min(10, n_bases), left: LEFT, right: RIGHT, draw, words,
    place: (from, to) => [from, to + 1],
  });
  draw();

  function colourOf(sample) { return colour(single ? "event" : data.colours[sample]); }

  function draw() {
    const { pen, width } = prepared(canvas), inner = width - LEFT - RIGHT, [from, to] = nav.view;
    const x = (place) => LEFT + (place - from) * nav.scale();
    pen.textBaseline = "middle";
    data.strands.forEach((strand, i) => drawStrand(pen, strand, tops[i], x, inner));
    pen.fillStyle = colour("soft");
    across(pen, ticks(from + 1, to, inner / 110).found.filter(Number.isInteger)
      .map((tick) => [x(tick - 0.5), tick.toLocaleString("en")]), bottom + 12, width);
    pen.textAlign = "center";
    pen.fillText(`position on ${data.contig}`, LEFT + inner / 2, bottom + 29);
    where.textContent = `${Math.floor(from + 1).toLocaleString("en")} to ${Math.floor(to).toLocaleString("en")}`;
  }

  function drawStrand(pen, strand, top, x, inner) {
    const floor = top + STRIP + PANEL, y = (current) => floor - (current - low) / (high - low) * PANEL;
    pen.fillStyle = colour("soft");
    pen.textAlign = "left";
    pen.fillText(strand.words, LEFT, top - 10);
    pen.textAlign = "right";
    for (const current of ticks(low, high, PANEL / 45).found) {
      pen.fillStyle = colour("line");
      pen.fillRect(LEFT, y(current), inner, 1);
      pen.fillStyle = colour("soft");
      pen.fillText(current, LEFT - 6, y(current));
    }
    pen.save();
    pen.translate(12, floor - PANEL / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText("current (pA)", 0, 0);
    pen.restore();
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, top, inner, STRIP + PANEL);
    pen.clip();
    const i0 = Math.max(Math.floor(nav.view[0]) - data.start, 0), i1 = Math.min(Math.ceil(nav.view[1]) - data.start, n_bases);
    for (let i = i0; i < i1; i++) {
      const left = x(data.start + i), wide = x(data.start + i + 1) - left, letter = strand.letters[i];
      if (strand.level[i] === null) continue;
      pen.fillStyle = colour("ACGT".includes(letter) ? letter : letter === "U" ? "T" : "soft");
      if (wide >= 9) {
        pen.font = "bold 13px system-ui, sans-serif";
        pen.textAlign = "center";
        pen.fillText(letter, left + wide / 2, top + STRIP / 2);
      } else pen.fillRect(left, top + 4, Math.max(wide - 0.3, 0.5), STRIP - 8);
      pen.fillStyle = colour("band");
      const above = y(strand.level[i] + strand.stdv[i]);
      pen.fillRect(left, above, wide, y(strand.level[i] - strand.stdv[i]) - above);
      pen.fillStyle = colour("model");
      pen.fillRect(left, y(strand.level[i]) - 0.75, wide, 1.5);
    }
    pen.lineWidth = 1;
    pen.globalAlpha = clamp(6 / strand.traces.length, 0.1, 0.6);
    for (const trace of strand.traces) {
      pen.strokeStyle = colourOf(trace.sample);
      if (data.kind === "events") steps(pen, trace.mean, x, y);
      else line(pen, trace, x, y);
    }
    pen.globalAlpha = 1;
    pen.lineWidth = 2;
    strand.medians.forEach((median, sample) => {
      pen.strokeStyle = colourOf(sample);
      steps(pen, median, x, y, false);
    });
    pen.restore();
  }

  function line(pen, trace, x, y) {
    pen.beginPath();
    let before = -Infinity;
    trace.position.forEach((place, i) => {
      const at = data.start + place / 100, base = Math.floor(place / 100);
      if (base - before > 1) pen.moveTo(x(at), y(trace.current[i])); else pen.lineTo(x(at), y(trace.current[i]));
      before = base;
    });
    pen.stroke();
  }

  function steps(pen, mean, x, y, isJoined = true) {
    pen.beginPath();
    let isOpen = false;
    mean.forEach((current, i) => {
      if (current !== null) {
        if (isOpen) pen.lineTo(x(data.start + i), y(current)); else pen.moveTo(x(data.start + i), y(current));
        pen.lineTo(x(data.start + i + 1), y(current));
      }
      isOpen = isJoined && current !== null;
    });
    pen.stroke();
  }

  function words(place, y) {
    const which = tops.findIndex((top) => y >= top && y < top + STRIP + PANEL), i = Math.floor(nav.at(place)) - data.start;
    if (which < 0 || place < LEFT || i < 0 || i >= n_bases) return "";
    const strand = data.strands[which];
    if (strand.level[i] === null) return "";
    const found = strand.medians.map((median, sample) => {
      const n = strand.traces.filter((trace) => trace.sample === sample && trace.mean[i] !== null).length;
      return median[i] === null ? "" : `\n${single ? "" : data.samples[sample] + ": "}median ${median[i].toFixed(2)} pA of ${n} reads`;
    });
    return `position ${(data.start + i + 1).toLocaleString("en")}, ${strand.letters[i]} (${strand.strand} strand)\n` +
      `expected ${strand.level[i].toFixed(2)} \u00b1 ${strand.stdv[i].toFixed(2)} pA${found.join("")}`;
  }
})();
