// The page of `sdulearn ask`. Texts of the table go into the page as text only, never as HTML.
const KEYS = { s: "same", arrowleft: "same", d: "different", arrowright: "different", u: "unsure", arrowdown: "unsure" };
const RETRY_MS = 2000;
const ESTIMATE_MS = 1000;
const PAGE = 100;
const state = { name: "", question: null, busy: false, paused: false, begin: 0, times: [], people: [], start: null };
const at = (id) => document.getElementById(id);

// An element with attributes (on... are listeners) and children: texts or elements.
function make(tag, attributes = {}, ...children) {
  const spaces = { svg: 1, rect: 1, path: 1, line: 1 };
  const element = tag in spaces ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function say(text, trouble = false) {
  at("status").textContent = text;
  at("status").classList.toggle("trouble", trouble);
}

const percent = (share, digits = 0) => (share === null ? "–" : `${(100 * share).toFixed(digits)}%`);
const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

const isPrivate = () => state.start.flip_rate !== null;

class Refused extends Error {}

async function call(name, data, post = false) {
  const options = { cache: "no-store" };
  let address = `api/${name}`;
  if (post) Object.assign(options, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });
  else if (data) address += "?" + new URLSearchParams(data);
  const response = await fetch(address, options);
  if (response.status === 404) throw new Refused("The server was started again: open the address that it printed. All saved answers are kept.");
  if (response.ok) return response.json();
  const text = await response.text();
  throw new Refused(text.startsWith("{") ? JSON.parse(text).error : `${text} (${response.status})`);
}

// Until the server answers: what was not acknowledged is sent again; the server counts it once.
async function insist(name, data) {
  for (;;) {
    try {
      return await call(name, data, true);
    } catch (error) {
      if (error instanceof Refused) throw error;
      say("Not saved yet: the server does not answer. Trying again. If it was stopped, start the same command again.", true);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

async function attempt(work) {
  try {
    await work();
  } catch (error) {
    say(error instanceof Refused ? error.message : "The server does not answer. Start the same command again; saved answers are kept.", true);
  }
}

// What changes something: one at a time, so that a second key is no answer to a question nobody has seen.
async function guarded(work) {
  if (state.busy) return;
  state.busy = true;
  setEnabled();
  await attempt(work);
  state.busy = false;
  setEnabled();
}

function setEnabled() {
  const off = state.busy || state.paused;
  // Not `disabled`, which would take the focus away between two questions.
  for (const button of document.querySelectorAll("[data-answer], #skip")) button.setAttribute("aria-disabled", off || !state.question);
  at("undo").setAttribute("aria-disabled", off);
}

// ---- the question

function partView(part, label) {
  if (part.kind === "image") {
    const image = make("img", { class: part.pixels ? "picture pixels" : "picture", src: `image/${part.row}`, alt: `Picture ${part.name ?? label}` });
    image.addEventListener("error", () => image.replaceWith(make("p", { class: "soft" }, `The picture ${part.name ?? ""} cannot be shown.`)));
    return image;
  }
  if (part.kind === "link") {
    const safe = /^https?:\/\//i.test(part.href);
    return safe ? make("p", {}, make("a", { href: part.href, target: "_blank", rel: "noopener noreferrer" }, part.href)) : make("p", {}, part.href);
  }
  return make("p", { class: "text", tabindex: "0", role: "group", "aria-label": `Text ${label}` }, part.text);
}

function sideView(thing, label) {
  const parts = thing.parts.filter((part) => part.kind !== "fields");
  return make("article", { "aria-label": `${label} thing` }, make("h2", {}, `${label}: ${thing.id}`), ...parts.map((part) => partView(part, thing.id)));
}

function fieldsOf(thing) {
  return thing.parts.find((part) => part.kind === "fields")?.fields ?? [];
}

function fieldsView(left, right) {
  const others = fieldsOf(right);
  const rows = fieldsOf(left).map(([name, value], k) => {
    const differs = value !== others[k][1];
    const mark = differs ? make("span", { class: "visually-hidden" }, " (differs)") : null;
    return make("tr", { class: differs ? "differs" : null }, make("th", { scope: "row" }, name, mark), make("td", {}, value), make("td", {}, others[k][1]));
  });
  if (!rows.length) return null;
  const head = make("tr", {}, make("th", { scope: "col" }, "Field"), make("th", { scope: "col" }, `First: ${left.id}`), make("th", { scope: "col" }, `Second: ${right.id}`));
  const table = make("table", { class: "fields" }, make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { class: "fields-box", tabindex: "0", role: "group", "aria-label": "Fields of both" }, table);
}

function inWords(thing) {
  const texts = thing.parts.map((part) => part.text ?? part.fields?.map(([name, value]) => `${name} ${value}`).join(", ") ?? `picture ${part.name ?? thing.id}`);
  return texts.join("; ").slice(0, 300);
}

function showQuestion(result, said) {
  state.question = result.question;
  at("over").hidden = result.question !== null;
  const pair = at("pair");
  if (result.question === null) {
    pair.replaceChildren();
    at("over").replaceChildren(make("p", {}, result.reason), make("p", {}, make("a", { href: "#finish" }, "Finish")));
    say(said);
    return;
  }
  const { left, right } = result.question;
  const hasSides = left.parts.some((part) => part.kind !== "fields");
  pair.replaceChildren(...[hasSides ? make("div", { class: "sides flash" }, sideView(left, "First"), sideView(right, "Second")) : null, fieldsView(left, right)].filter(Boolean));
  at("status").replaceChildren(said, make("span", { class: "visually-hidden" }, ` First: ${inWords(left)}. Second: ${inWords(right)}.`));
  at("status").classList.remove("trouble");
}

function answer(word) {
  if (!state.question || state.paused) return;
  guarded(async () => {
    const result = await insist("answer", { annotator: state.name, token: state.question.token, answer: word });
    state.times.push(Date.now());
    showQuestion(result, result.written ? `Answer ${result.answers} saved${isPrivate() ? "" : `: ${word}`}.` : "Not saved: that question is no longer open. Here is another one.");
    refreshNumbers();
  });
}

const undo = () => state.paused || guarded(async () => {
  const result = await insist("undo", { annotator: state.name });
  showQuestion(result, result.undone ? "Taken back: here is that question again." : "There is nothing of yours to take back.");
  refreshNumbers();
});

const skip = () => state.paused || !state.question || guarded(async () => {
  showQuestion(await insist("skip", { annotator: state.name, token: state.question.token }), "Put off: it comes back later.");
});

function pause() {
  state.paused = !state.paused;
  at("pair").hidden = state.paused;
  at("pause").setAttribute("aria-pressed", state.paused);
  state.times = [];
  setEnabled();
  say(state.paused ? `Paused. All answers are saved in ${state.start.log}: you can close the page, stop the server, and go on with the same command at any time.` : "Go on.");
}

document.addEventListener("keydown", (event) => {
  const target = event.target instanceof Element ? event.target : document.body;
  const typing = target.closest("input:not([type=checkbox]), select, textarea");
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || typing || at("ask").hidden || !at("keys").checked) return;
  const key = event.key.toLowerCase();
  const scrolls = target.closest(".text, .fields-box");
  if (key === "arrowdown" && scrolls && scrolls.scrollHeight > scrolls.clientHeight) return;
  const actions = { z: undo, k: skip, p: pause };
  if (key in KEYS) answer(KEYS[key]);
  else if (key in actions) actions[key]();
  else return;
  event.preventDefault();
});

// ---- numbers

// The server gives what it has at once; while it estimates anew, the page asks again.
let later = 0;
async function refreshNumbers() {
  clearTimeout(later);
  try {
    const numbers = await call("numbers");
    at("numbers").replaceChildren(...numbersView(numbers));
    clearTimeout(later);
    if (numbers.estimating) later = setTimeout(refreshNumbers, ESTIMATE_MS);
  } catch {
    // The next answer says what is wrong, if anything is.
  }
}

function pace() {
  const gaps = state.times.slice(1).map((time, k) => time - state.times[k]).sort((a, b) => a - b);
  return gaps.length < 4 ? null : gaps[gaps.length >> 1] / 1000;
}

function numbersView(numbers) {
  const parts = [
    make("p", { class: "big", id: "n-answers" }, count(numbers.n_answers, "answer")),
    make("p", { class: "soft" }, `${numbers.n_same} same, ${numbers.n_different} different, ${numbers.n_unsure} unsure${isPrivate() ? ", as stored" : ""}`),
  ];
  const seconds = pace();
  if (seconds !== null) parts.push(make("p", { class: "soft" }, `about ${seconds.toFixed(1)} s an answer: 50 more take ${Math.ceil((50 * seconds) / 60)} min`));
  if (numbers.privacy) parts.push(make("h2", {}, "Privacy"), make("p", { id: "privacy" }, numbers.privacy));
  parts.push(make("h2", {}, "Estimated accuracy"), ...accuracyView(numbers));
  parts.push(make("h2", {}, "Classes found"), ...classesView(numbers.classes));
  parts.push(make("h2", {}, "To look at again"), reviewLink(numbers.review.length));
  parts.push(make("h2", {}, "Go on?"), make("p", { id: "advice" }, adviceWords(numbers.advice)));
  return parts;
}

function accuracyView(numbers) {
  const { accuracy, curve } = numbers;
  if (!accuracy) return [make("p", { class: "soft" }, "Not enough random questions yet.")];
  const words = make("p", {}, make("b", {}, percent(accuracy.value, 1)), ` (${percent(accuracy.low)} to ${percent(accuracy.high)})`);
  const source = make("p", { class: "soft" }, "By the questions drawn at random alone.");
  return curve.length > 1 ? [words, curveView(curve), source] : [words, source];
}

function curveView(curve) {
  const [first, last] = [curve[0].n_answers, curve[curve.length - 1].n_answers];
  const bottom = Math.min(0.5, ...curve.map((one) => one.low));
  const x = (n) => ((100 * (n - first)) / Math.max(last - first, 1)).toFixed(2);
  const y = (share) => ((50 * (1 - share)) / (1 - bottom)).toFixed(2);
  const line = (name) => curve.map((one) => `${x(one.n_answers)} ${y(one[name])}`);
  const label = `Estimated accuracy from answer ${first} to ${last}: from ${percent(curve[0].value)} to ${percent(curve[curve.length - 1].value)}`;
  const picture = make("svg", { class: "curve", viewBox: "0 0 100 50", preserveAspectRatio: "none", role: "img", "aria-label": label },
    make("line", { class: "grid", x1: 0, x2: 100, y1: y(0.75), y2: y(0.75) }),
    make("path", { class: "band", d: `M${line("low").concat(line("high").reverse()).join("L")}Z` }),
    make("path", { class: "line", d: `M${line("value").join("L")}` }));
  const ends = make("p", { class: "scale" }, make("span", {}, `answer ${first}`), make("span", {}, `${percent(bottom)} to 100%`), make("span", {}, `answer ${last}`));
  return make("div", {}, picture, ends);
}

function classesView(classes) {
  if (!classes.length) return [make("p", { class: "soft" }, "None yet.")];
  const note = make("p", { class: "soft" }, "With rows known to be in each, and shares by the random questions.");
  return [note, ...classes.slice(0, 30).map((one, k) =>
    make("div", { class: "class-share" }, make("span", {}, one.name || `Class ${k + 1}`, make("span", { class: "soft" }, ` (${one.n_points})`)),
      make("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, make("rect", { width: 100 * (one.share ?? 0), height: 10 })),
      make("span", {}, percent(one.share))))];
}

function reviewLink(n) {
  if (isPrivate()) return make("p", { class: "soft" }, "Nothing: answers are randomised.");
  if (!n) return make("p", { class: "soft" }, "No answer contradicts the others.");
  return make("p", {}, make("a", { href: "#history" }, count(n, "answer")), ` ${n === 1 ? "disagrees" : "disagree"} with what the other answers say.`);
}

function adviceWords(advice) {
  if (!advice) return "Too early to say.";
  const points = advice.gain < 0.0005 ? "less than 0.1" : `about ${(100 * advice.gain).toFixed(1)}`;
  const gain = `The next ${advice.n_next} answers are expected to add ${points} points of accuracy.`;
  return advice.go_on ? gain : `${gain} You may stop here.`;
}

// ---- history

function answerCell(one, name) {
  if (!one.may_change) return make("span", {}, one.answer);
  const change = async (event) => {
    const select = event.target;
    await guarded(async () => {
      await insist("change", { annotator: state.name, session: one.session, number: one.number, answer: select.value });
      say(`Answer ${one.number} changed to ${select.value}.`);
      one.answer = select.value;
    });
    select.value = one.answer;
  };
  const options = ["same", "different", "unsure"].map((word) => make("option", { value: word, selected: word === one.answer }, word));
  return make("select", { "aria-label": `${name} ${one.number}: ${one.left.title} and ${one.right.title}`, onchange: change }, ...options);
}

function endView(end) {
  const picture = end.picture ? make("img", { class: "thumb pixels", src: `image/${end.row}`, alt: "", loading: "lazy" }) : null;
  return make("div", { class: picture ? "with-picture" : null }, picture, make("span", { class: "end" }, end.title));
}

function answersTable(answers, name) {
  const head = ["No.", "First", "Second", "Answer", "Who", "When"].map((text, k) => make("th", { scope: "col", class: k > 3 ? "optional" : null }, text));
  const rows = answers.map((one) =>
    make("tr", {}, make("td", {}, String(one.number)), make("td", {}, endView(one.left)), make("td", {}, endView(one.right)),
      make("td", {}, answerCell(one, name)), make("td", { class: "optional" }, one.annotator), make("td", { class: "optional" }, new Date(one.time).toLocaleString())));
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

async function showHistory() {
  const [found, numbers] = await Promise.all([call("history", { begin: state.begin, annotator: state.name }), call("numbers", { annotator: state.name })]);
  const last = Math.min(found.begin + PAGE, found.total);
  at("list").replaceChildren(found.total ? answersTable(found.answers, "Answer") : make("p", { class: "soft" }, "No answers yet."));
  at("range").textContent = found.total ? `${found.begin + 1} to ${last} of ${found.total}, the last first` : "";
  at("newer").disabled = found.begin === 0;
  at("older").disabled = last >= found.total;
  at("review").replaceChildren(...(numbers.review.length ? [make("h2", {}, "To look at again"), make("p", {}, "These disagree with what the other answers say. Are they right?"), answersTable(numbers.review, "Doubtful answer")] : []));
}

const turn = (step) => { state.begin = Math.max(0, state.begin + step); attempt(showHistory); };

// ---- people

function tableOf(head, rows) {
  const cells = (tag, texts) => texts.map((text) => make(tag, tag === "th" ? { scope: "col" } : {}, text));
  return make("table", {}, make("thead", {}, make("tr", {}, ...cells("th", head))), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells("td", row)))));
}

async function showPeople() {
  const { people, couples } = await call("people");
  const named = (name) => name || "no name";
  const who = people.map((one) => [named(one.name), String(one.n_answers), percent(one.n_unsure / one.n_answers), percent(one.error_rate, 1)]);
  const pairs = couples.map((one) => [`${named(one.first)} and ${named(one.second)}`, String(one.n_both), `${one.n_agreed} (${percent(one.n_agreed / one.n_both)})`]);
  at("agreement").replaceChildren(
    who.length ? tableOf(["Who", "Answers", "Unsure", "Estimated error rate"], who) : make("p", { class: "soft" }, "No answers yet."),
    make("h2", {}, "Questions that two people answered"),
    pairs.length ? tableOf(["Who", "Questions", "Agreed"], pairs) : make("p", { class: "soft" }, "None yet."),
    make("p", { class: "soft" }, "Error rates follow from how often people disagree, if they err independently of each other. With two people alone, nobody can say who errs more often."));
}

// ---- finish

async function showFinish() {
  const { classes } = await call("classes");
  const views = classes.map((one, k) => {
    const input = make("input", { id: `class-${k}`, maxlength: "60", autocomplete: "off", value: one.name, "data-ids": JSON.stringify(one.ids) });
    const examples = one.examples.map((thing) => {
      const rows = fieldsOf(thing).slice(0, 8).map(([name, value]) => make("div", {}, make("span", { class: "soft" }, `${name}: `), value));
      return make("article", { "aria-label": `Example ${thing.id}` }, make("h2", {}, thing.id), ...thing.parts.filter((part) => part.kind !== "fields").map((part) => partView(part, thing.id)), ...rows);
    });
    return make("div", { class: "class" }, make("label", { for: `class-${k}` }, `Name of class ${k + 1} `), input, make("div", { class: "examples" }, ...examples));
  });
  at("classes").replaceChildren(...(views.length ? views : [make("p", { class: "soft" }, "No classes to name: random pairs put no row into a class, and other questions need some answers first.")]));
  at("fit").hidden = !state.start.can_fit;
  if (!state.start.can_fit) at("result").replaceChildren(make("p", { class: "soft" }, "This is a demonstration: there is no table to fit a model to."));
}

function askedView({ asked, answered }) {
  const named = ({ id, thing }) => make("div", {}, thing.title === id ? null : make("span", { class: "soft" }, id), endView(thing));
  const rows = asked.map((one) => [named(one), one.class, percent(one.probability, 1), String(one.n_answers)]);
  const table = tableOf(["Row", "Class", "Probability", "Answers"], rows);
  return [make("h2", {}, "Rows that were asked about"),
    make("p", {}, "Their classes by features and answers together; the least certain first."),
    make("div", { class: "fields-box", tabindex: "0", role: "group", "aria-label": "Rows that were asked about" }, table),
    make("p", {}, make("a", { href: "answered", download: "answered.csv" }, "Download all (CSV)"), ` (${answered})`)];
}

function fit(event) {
  event.preventDefault();
  const labels = {};
  for (const input of at("classes").querySelectorAll("input")) for (const id of JSON.parse(input.dataset.ids)) labels[id] = input.value;
  guarded(async () => {
    say("Fitting. This may take a minute.");
    const result = await call("finish", { annotator: state.name, labels }, true);
    const copy = (text) => make("button", { type: "button", onclick: () => navigator.clipboard.writeText(text).then(() => say("Copied."), () => say("Copying is not allowed here: mark the text.", true)) }, "Copy");
    at("result").replaceChildren(make("h2", {}, "The model"), make("ul", {}, ...result.lines.map((line) => make("li", {}, line))),
      make("p", {}, make("a", { href: "report", target: "_blank" }, "Report page"), ` (${result.report})`),
      ...askedView(result),
      make("h2", {}, "Use it"), make("pre", { tabindex: "0" }, result.predict), copy(result.predict),
      make("h2", {}, "Fit it again"), make("pre", { tabindex: "0" }, result.fit), copy(result.fit));
    say(`Fitted: ${result.model}`);
    at("result").scrollIntoView();
  });
}

// ---- pages

const pages = { ask: () => refreshNumbers(), history: showHistory, people: showPeople, finish: showFinish };

function route(focus = true) {
  const name = location.hash.slice(1) in pages ? location.hash.slice(1) : "ask";
  for (const page of Object.keys(pages)) at(page).hidden = page !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (focus) at(`${name}-title`).focus();
  window.scrollTo(0, 0);
  attempt(pages[name]);
}

const open = () => guarded(async () => {
  if (state.start.need_name && !state.name) {
    say("Give your name first: others answer here too.", true);
    at("name").focus();
    return;
  }
  const result = await call("question", { annotator: state.name });
  showQuestion(result, result.answers ? `${count(result.answers, "answer")} so far.` : "");
  refreshNumbers();
});

function setName(event) {
  event.preventDefault();
  state.name = at("name").value.trim();
  sessionStorage.setItem("name", state.name);
  state.times = [];
  at("ask-title").focus();
  open();
}

async function begin() {
  state.start = await call("start");
  at("title").textContent = state.start.title;
  document.title = `Same, or different? ${state.start.title}`;
  at("private").hidden = !isPrivate();
  at("private").textContent = `Answers are randomised: each one is flipped with probability ${percent(state.start.flip_rate, 1)} before it is stored, so that no line of the log says for certain what was said. The model allows for it. "Unsure" is stored as it is.`;
  state.name = sessionStorage.getItem("name") ?? state.start.annotator;
  at("name").value = state.name;
  at("known").append(...state.start.people.filter(Boolean).map((name) => make("option", { value: name })));
  for (const button of document.querySelectorAll("[data-answer]")) button.addEventListener("click", () => answer(button.dataset.answer));
  const clicks = { undo, skip, pause, newer: () => turn(-PAGE), older: () => turn(PAGE) };
  for (const [id, action] of Object.entries(clicks)) at(id).addEventListener("click", action);
  at("who").addEventListener("submit", setName);
  at("naming").addEventListener("submit", fit);
  window.addEventListener("hashchange", () => route());
  await open();
  route(false);
}

begin().catch((error) => say(error.message, true));
