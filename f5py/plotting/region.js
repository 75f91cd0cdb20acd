(async function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const canvas = document.getElementById("region"), where = document.getElementById("where");
  const reads = data.reads, n = reads.name.length, length = data.end - data.start;
  const LEFT = 56, RIGHT = 34, TOP = 12, SHARES = 130, DEPTH = 40, GENE = 24, ROW = 13, TITLE = 22, GAP = 14, AXIS = 40;
  const MARK = 4;  // pixels of a mark
  const [lowest, highest] = data.limits, deepest = Math.max(...data.depth.map((depths) => Math.max(...depths)), 1);
  const STATES = ["methylated", "plain", "undecided"];

  async function unpacked(text, Kind) {
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Kind(await new Response(stream).arrayBuffer());
  }
  const position = await unpacked(data.position, Int32Array), quality = await unpacked(data.probability, Uint8Array);
  for (let i = 1; i < position.length; i++) position[i] += position[i - 1];
  const oddsOf = (value) => Math.log((value + 0.5) / (255.5 - value));
  // 0: modified, 1: unmodified, 2: undecided
  const stateOf = Array.from({ length: 256 }, (_, value) =>
    Math.abs(oddsOf(value)) < data.threshold ? 2 : oddsOf(value) > 0 ? 0 : 1);
  const firstCall = [0];
  for (const count of reads.calls) firstCall.push(firstCall[firstCall.length - 1] + count);

  // Decided calls by site, for each line.
  const sites = data.lines.map((line) => {
    const counts = new Map();
    for (const i of line.reads)
      for (let j = firstCall[i]; j < firstCall[i + 1]; j++) {
        const state = stateOf[quality[j]];
        if (state === 2) continue;
        const count = counts.get(position[j]) || [0, 0];
        count[state]++;
        counts.set(position[j], count);
      }
    const places = [...counts.keys()].sort((a, b) => a - b);
    return { places, counts: places.map((place) => counts.get(place)) };
  });

  const geneRows = data.genes && data.genes.row.length ? Math.max(...data.genes.row) + 1 : 0;
  const rows = data.groups.map(() => 0);
  for (let i = 0; i < n; i++) rows[reads.group[i]] = Math.max(rows[reads.group[i]], reads.row[i] + 1);
  const genesTop = TOP + SHARES + (geneRows ? GAP : 0), depthTops = [], tops = [];
  let bottom = genesTop + geneRows * GENE;
  rows.forEach((count, i) => {
    if (depthTops.length === data.groups[i].sample) {
      depthTops.push(bottom + GAP);
      bottom += GAP + DEPTH;
    }
    tops.push(bottom + TITLE);
    bottom += TITLE + count * ROW;
  });
  canvas.style.height = bottom + AXIS + "px";

  const nav = navigated(canvas, {
    first: data.start, end: data.end, narrowest: 40, left: LEFT, right: RIGHT, draw, words,
    place: (from, to) => [from, to + 1],
  });
  draw();

  function draw() {
    const { pen, width } = prepared(canvas), inner = width - LEFT - RIGHT, [from, to] = nav.view, scale = nav.scale();
    const x = (place) => LEFT + (place - from) * scale;
    pen.textBaseline = "middle";
    axisOf(pen, TOP, SHARES, [highest, (lowest + highest) / 2, lowest].map((share) => Math.round(100 * share)), "modified (%)", inner);
    for (const top of depthTops) axisOf(pen, top, DEPTH, [deepest, 0], "depth", inner);
    pen.fillStyle = colour("soft");
    across(pen, ticks(from + 1, to, inner / 110).found.filter(Number.isInteger)
      .map((tick) => [x(tick - 0.5), tick.toLocaleString("en")]), bottom + 12, width);
    pen.textAlign = "center";
    pen.fillText(`position on ${data.contig}`, LEFT + inner / 2, bottom + 29);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, inner, bottom + 2);
    pen.clip();
    depthTops.forEach((top, sample) => drawDepth(pen, x, top, data.depth[sample]));
    data.lines.forEach((line, i) => drawShares(pen, x, sites[i], line));
    if (geneRows) drawGenes(pen, x);
    pen.textAlign = "left";
    data.groups.forEach((group, i) => {
      pen.fillStyle = colour(data.lines.length > 1 ? group.colour : "soft");
      pen.fillText(group.words, LEFT, tops[i] - 9);
    });
    for (let i = 0; i < n; i++) if (reads.end[i] > from && reads.start[i] < to) drawRead(pen, x, i, inner);
    pen.restore();
    where.textContent = `${Math.floor(from + 1).toLocaleString("en")} to ${Math.floor(to).toLocaleString("en")}`;
  }

  function axisOf(pen, top, height, labels, words, inner) {
    pen.textAlign = "right";
    labels.forEach((label, i) => {
      const y = top + height * i / (labels.length - 1);
      pen.fillStyle = colour("line");
      pen.fillRect(LEFT, y, inner, 1);
      pen.fillStyle = colour("soft");
      pen.fillText(label, LEFT - 6, y);
    });
    pen.save();
    pen.translate(12, top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(words, 0, 0);
    pen.restore();
  }

  function drawDepth(pen, x, top, depths) {
    const bases = length / depths.length, low = top + DEPTH;
    pen.fillStyle = colour("undecided");
    depths.forEach((depth, i) => {
      const at = x(data.start + i * bases), height = depth / deepest * DEPTH;
      pen.fillRect(at, low - height, Math.max(x(data.start + (i + 1) * bases) - at, 0) + 0.5, height);
    });
  }

  // A point a site, the larger the more calls, and the line.
  function drawShares(pen, x, { places, counts }, line) {
    const [from, to] = nav.view, i0 = above(places, from - 1), i1 = above(places, to), shown = [];
    const y = (share) => TOP + (highest - clamp(share, lowest, highest)) / (highest - lowest) * SHARES;
    const called = (i) => counts[i][0] + counts[i][1];
    let most = 1;
    for (let i = i0; i < i1; i++) if (called(i) >= line.least) {
      shown.push(i);
      most = Math.max(most, called(i));
    }
    pen.fillStyle = pen.strokeStyle = colour(line.colour);
    pen.globalAlpha = shown.length > 50 ? 0.25 : 0.9;
    for (const i of shown) {
      pen.beginPath();
      pen.arc(x(places[i] + 0.5), y(counts[i][0] / called(i)), 2.6 * Math.sqrt(called(i) / most), 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
    pen.lineWidth = 1.3;
    pen.beginPath();
    let isOpen = false;
    line.position.forEach((place, i) => {
      if (place >= 0 && isOpen) pen.lineTo(x(place + 0.5), y(line.share[i]));
      else if (place >= 0) pen.moveTo(x(place + 0.5), y(line.share[i]));
      isOpen = place >= 0;
    });
    pen.stroke();
  }

  // A box with a tip at one of its ends.
  function pointed(pen, left, right, top, height, direction) {
    const tip = Math.min(5, (right - left) / 2) * (direction ? 1 : 0), middle = top + height / 2;
    const a = direction < 0 ? left + tip : left, b = direction > 0 ? right - tip : right;
    pen.fillRect(a, top, Math.max(b - a, 0.5), height);
    if (!tip) return;
    const [base, end] = direction > 0 ? [b, right] : [a, left];
    pen.beginPath();
    pen.moveTo(base, top - height / 2);
    pen.lineTo(end, middle);
    pen.lineTo(base, top + 1.5 * height);
    pen.fill();
  }

  function drawGenes(pen, x) {
    const genes = data.genes;
    pen.textAlign = "left";
    genes.start.forEach((start, i) => {
      if (genes.end[i] < nav.view[0] || start > nav.view[1]) return;
      const top = genesTop + genes.row[i] * GENE;
      pen.fillStyle = colour("soft");
      pointed(pen, x(start), x(genes.end[i]), top + 15, 4, { "+": 1, "-": -1 }[genes.strand[i]] || 0);
      pen.fillText(genes.name[i], Math.max(x(start), LEFT), top + 6);
    });
  }

  // Calls that would share a mark divide it by their states, so that colours have the areas of what they stand for.
  function drawRead(pen, x, i, inner) {
    const top = tops[reads.group[i]] + reads.row[i] * ROW, scale = nav.scale();
    pen.fillStyle = colour("read");
    const isCut = reads.reverse[i] ? reads.start[i] <= data.start : reads.end[i] >= data.end;
    pointed(pen, x(reads.start[i]), x(reads.end[i]), top + 4.5, 3, isCut ? 0 : reads.reverse[i] ? -1 : 1);
    const { n_cells, size } = division(inner), counts = new Uint32Array(3 * n_cells), [from, to] = nav.view;
    const [first, last] = callsBetween(i, from, to);
    for (let j = first; j < last; j++) counts[3 * cellOf(position[j], size, n_cells) + stateOf[quality[j]]]++;
    for (let cell = 0; cell < n_cells; cell++) {
      const total = counts[3 * cell] + counts[3 * cell + 1] + counts[3 * cell + 2];
      let at = top + 1;
      for (let state = 0; total && state < 3; state++) {
        const height = (ROW - 2) * counts[3 * cell + state] / total;
        if (!height) continue;
        pen.fillStyle = colour(STATES[state]);
        pen.fillRect(x(from + cell * size), at, size * scale, height);
        at += height;
      }
    }
  }

  function division(inner) {
    const span = nav.view[1] - nav.view[0], n_cells = Math.max(1, Math.floor(Math.min(inner / MARK, span)));
    return { n_cells, size: span / n_cells };
  }

  function cellOf(place, size, n_cells) {
    return clamp(Math.floor((place + 0.5 - nav.view[0]) / size), 0, n_cells - 1);
  }

  function callsBetween(i, from, to) {
    const calls = position.subarray(firstCall[i], firstCall[i + 1]);
    return [firstCall[i] + above(calls, from - 1), firstCall[i] + above(calls, to - 0.5)];
  }

  function words(across, y) {
    const inner = canvas.clientWidth - LEFT - RIGHT, place = nav.at(across);
    if (across < LEFT || across > LEFT + inner) return "";
    if (y < TOP + SHARES) return sitesAt(place);
    const group = tops.findIndex((top, i) => y >= top && y < top + rows[i] * ROW);
    if (group < 0) return "";
    const row = Math.floor((y - tops[group]) / ROW);
    for (let i = 0; i < n; i++) {
      if (reads.group[i] !== group || reads.row[i] !== row || place < reads.start[i] || place >= reads.end[i]) continue;
      const head = `${reads.name[i]} (${reads.reverse[i] ? "-" : "+"})`, { n_cells, size } = division(inner);
      const cell = Math.floor((place - nav.view[0]) / size), counts = [0, 0, 0], [first, last] = callsBetween(i, ...nav.view);
      const found = [];
      for (let j = first; j < last; j++) if (cellOf(position[j], size, n_cells) === cell) {
        counts[stateOf[quality[j]]]++;
        found.push(j);
      }
      if (!found.length) return head;
      if (found.length > 1)
        return `${head}\n${found.length} calls: ${counts[0]} modified, ${counts[1]} unmodified, ` +
          `${counts[2]} below the threshold`;
      const value = quality[found[0]];
      return `${head}\nposition ${(position[found[0]] + 1).toLocaleString("en")}\n` +
        `probability ${((value + 0.5) / 256).toFixed(3)}, log-odds ${oddsOf(value).toFixed(2)}`;
    }
    return "";
  }

  function sitesAt(place) {
    const reach = 4 / nav.scale(), told = [];
    data.lines.forEach((line, i) => {
      const { places, counts } = sites[i], at = above(places, place - 0.5);
      const near = [at - 1, at].filter((j) => j >= 0 && j < places.length && Math.abs(places[j] + 0.5 - place) < reach)
        .sort((a, b) => Math.abs(places[a] + 0.5 - place) - Math.abs(places[b] + 0.5 - place))[0];
      if (near === undefined) return;
      const [modified, plain] = counts[near];
      told.push(`${data.lines.length > 1 ? line.words + ", " : ""}position ` +
        `${(places[near] + 1).toLocaleString("en")}: ${modified} of ${modified + plain} calls modified`);
    });
    return told.join("\n");
  }
})();
