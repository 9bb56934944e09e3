// The page of `sdulearn ask`.
import {
  answerButtons,
  bar,
  classLabel,
  fieldsOf,
  inWords,
  isTaken,
  itemLabel,
  keyed,
  make,
  named,
  number,
  openDialog,
  partView,
  partsView,
  percent,
  questionView,
  replyOf,
  speak,
  t,
  titleOf,
  USED,
} from "./view.js";
import { markdown } from "./markdown.js";

const RETRY_MS = 2000;
const ESTIMATE_MS = 1000;
const PAGE = 100;
const EXAMPLE_FIELDS = 8;
// From this estimate on, a model is right for nearly all rows, as in reports.
const NEARLY_ALL = 0.985;
const state = { name: "", question: null, busy: false, paused: false, begin: 0, since: null, own: 0, start: null };
const at = (id) => document.getElementById(id);
const soft = (text) => make("p", { class: "soft" }, text);

function say(text, trouble = false) {
  at("status").textContent = text;
  at("status").classList.toggle("trouble", trouble);
}

const isPrivate = () => state.start.flip_rate !== null;
const interval = ({ low, high }) => t("interval", { low: percent(low), high: percent(high) });

class Refused extends Error {}

async function call(name, data, post = false) {
  const options = { cache: "no-store" };
  let address = `api/${name}`;
  if (post)
    Object.assign(options, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(data),
    });
  else if (data) address += `?${new URLSearchParams(data)}`;
  const response = await fetch(address, options);
  if (response.status === 404) throw new Refused(t("restarted"));
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
      say(t("not_saved_yet"), true);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

async function attempt(work) {
  try {
    await work();
  } catch (error) {
    say(error instanceof Refused ? error.message : t("no_server"), true);
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
  for (const button of document.querySelectorAll("[data-answer], .pick, #skip"))
    button.setAttribute("aria-disabled", off || !state.question);
  at("undo").setAttribute("aria-disabled", off);
}

// ---- the question

const heading = (question) => state.start.wording || titleOf(question);

// `isNew`: it was not seen before, so that the time until its answer tells how long it takes.
function showQuestion(result, said, isNew = false) {
  const question = result.question && named(result.question);
  const changed = state.question?.form !== question?.form;
  const hadFocus = at("pair").contains(document.activeElement);
  state.question = question;
  state.since = isNew ? performance.now() : null;
  state.own = result.own;
  state.last = result.last;
  at("ask-title").textContent = heading(question);
  at("over").hidden = question !== null;
  at("comment").value = "";
  showProgress();
  if (question === null) {
    at("pair").replaceChildren();
    at("answers").replaceChildren();
    at("over").replaceChildren(
      make("p", {}, result.done ? t("done_person", { n: state.start.per_person }) : result.reason),
      make("p", {}, make("a", { class: "main", href: "#finish" }, t("finish"))),
    );
    say(said);
    return;
  }
  at("pair").replaceChildren(...questionView(question, { pick: answer, menu: classMenu }));
  if (changed) at("answers").replaceChildren(...answerButtons(question, answer));
  // What had the focus is gone.
  if (hadFocus && question.form === "sort") at("pair").querySelector(".pick").focus();
  at("status").replaceChildren(said, make("span", { class: "visually-hidden" }, ` ${itemsInWords(question)}`));
  at("status").classList.remove("trouble");
}

function itemsInWords({ form, items }) {
  const [first, ...others] = items.map(inWords);
  const texts =
    form === "sort"
      ? items.map((item) => `${itemLabel(item)}: ${inWords(item)}.`)
      : form === "pair"
        ? [`${t("first")}: ${first}.`, `${t("second")}: ${others[0]}.`]
        : [`${t("first")}: ${first}.`, ...others.map((text, k) => `${k + 1}: ${text}.`)];
  return texts.join(" ").slice(0, 1300);
}

// Items that were sorted, group by group.
function groupsInWords(groups, label) {
  const together = [...new Set(groups.filter((group) => group !== null))].map((group) =>
    groups.flatMap((own, k) => (own === group ? [label(k)] : [])).join(" = "),
  );
  return together.join(" | ");
}

function saidWords(said) {
  const { items, choices } = state.question;
  if (Array.isArray(said)) return groupsInWords(said, (k) => itemLabel(items[k]));
  return typeof said === "number" ? classLabel(choices[said]) : t(said).toLocaleLowerCase();
}

function answer(word) {
  if (!state.question || state.paused || state.busy) return;
  const reply = replyOf(word, state.question);
  if (reply === null) say(t("place_two"), true);
  else if (reply === "none" && unusedNames().length) nameNew();
  else send(reply);
}

function send(said, name = "") {
  guarded(async () => {
    const words = name || saidWords(said);
    const result = await insist("answer", {
      annotator: state.name,
      token: state.question.token,
      reply: said,
      comment: at("comment").value,
      name,
      seconds: state.since === null || isPrivate() ? null : Math.round(performance.now() - state.since) / 1000,
    });
    const saved = isPrivate()
      ? t("saved_private", { n: result.answers })
      : t("saved", { n: result.answers, answer: words });
    showQuestion(result, result.written ? saved : t("stale"), true);
    // Who has answered knows what to do; they can be opened again.
    if (result.own === 1) at("instructions").open = false;
    refreshNumbers();
  });
}

// ---- classes

const unusedNames = () =>
  state.start.class_names.filter((name) => !state.question.choices?.some((choice) => choice.name === name));

// Which of the expected classes is new; a number or a click answers.
function nameNew() {
  const choose = (name) => {
    dialog.close();
    send("none", name);
  };
  const names = unusedNames();
  const buttons = names.map((name, k) =>
    make(
      "button",
      { type: "button", onclick: () => choose(name) },
      k < 9 ? make("kbd", {}, String(k + 1)) : null,
      " ",
      name,
    ),
  );
  const dialog = openDialog(
    at("pair"),
    t("new_class"),
    make("h2", {}, t("new_class")),
    make(
      "div",
      { class: "names" },
      ...buttons,
      make("button", { type: "button", onclick: () => choose("") }, make("kbd", {}, "0"), " ", t("no_name_yet")),
    ),
  );
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "0") choose("");
    else if (names[Number(event.key) - 1]) choose(names[Number(event.key) - 1]);
  });
}

function classMenu(place, button) {
  const { token, choices } = state.question;
  const choice = choices[place];
  const act = (name, data, said) => {
    dialog.close();
    guarded(async () => {
      showQuestion(await insist(name, { annotator: state.name, ...data }), said);
      refreshNumbers();
    });
  };
  const input = make("input", {
    id: "class-name",
    maxlength: "60",
    autocomplete: "off",
    value: choice.name,
    list: "class-names",
  });
  const rename = (event) => {
    event.preventDefault();
    if (input.value.trim())
      act("rename", { id: choice.id, name: input.value }, t("renamed", { name: input.value.trim() }));
  };
  const others = make(
    "select",
    { id: "class-into" },
    ...choices.filter((one) => one !== choice).map((one) => make("option", { value: one.id }, classLabel(one))),
  );
  const into = () => classLabel(choices.find((one) => one.id === others.value));
  const row = (...parts) => make("div", { class: "menu-row" }, ...parts);
  const dialog = openDialog(
    button,
    t("class_menu", { name: classLabel(choice) }),
    make("h2", {}, classLabel(choice)),
    make("div", { class: "menu-example" }, ...partsView(choice, { still: true })),
    row(
      make(
        "button",
        { type: "button", onclick: () => act("example", { token, position: place }, t("another_shown")) },
        t("another"),
      ),
    ),
    make(
      "form",
      { onsubmit: rename },
      row(
        make("label", { for: "class-name" }, t("class_name")),
        input,
        make("datalist", { id: "class-names" }, ...unusedNames().map((name) => make("option", { value: name }))),
        make("button", { type: "submit" }, t("rename")),
      ),
    ),
    choices.length > 1
      ? row(
          make("label", { for: "class-into" }, t("same_class_as")),
          others,
          make(
            "button",
            {
              type: "button",
              onclick: () => act("merge", { id: choice.id, into: others.value }, t("merged", { name: into() })),
            },
            t("merge"),
          ),
        )
      : null,
    row(
      make(
        "button",
        { type: "button", onclick: () => act("split", { id: choice.id }, t("split_done", { id: choice.id })) },
        t("split", { id: choice.id }),
      ),
    ),
    make("p", { class: "soft" }, t("menu_note")),
  );
}

const undo = () =>
  state.paused ||
  state.question?.back?.() ||
  guarded(async () => {
    const result = await insist("undo", { annotator: state.name, key: state.last });
    showQuestion(result, t(result.undone ? "taken_back" : "nothing_to_undo"));
    refreshNumbers();
  });

const skip = () =>
  state.paused ||
  !state.question ||
  guarded(async () => {
    showQuestion(await insist("skip", { annotator: state.name, token: state.question.token }), t("put_off"));
  });

function pause() {
  state.paused = !state.paused;
  at("pair").hidden = state.paused;
  at("ask").classList.toggle("paused", state.paused);
  at("pause").setAttribute("aria-pressed", state.paused);
  state.since = null;
  setEnabled();
  say(state.paused ? t("paused", { log: state.start.log }) : t("go_on"));
}

document.addEventListener("keydown", (event) => {
  if (["Escape", "Enter"].includes(event.key) && event.target === at("comment")) at("ask-title").focus();
  if (at("ask").hidden || !at("keys").checked || isTaken(event)) return;
  const said = state.question ? keyed(event, state.question) : null;
  if (said === USED) {
    event.preventDefault();
    return;
  }
  const actions = { z: undo, k: skip, p: pause, c: () => at("comment").focus() };
  const action = said === null ? actions[event.key.toLowerCase()] : () => answer(said);
  if (!action) return;
  event.preventDefault();
  action();
});

// ---- how far it is

// Of one's own questions, or of the answers that make the interval narrow: its width falls like 1 / sqrt(n).
function progress(accuracy) {
  const { per_person: most, until } = state.start;
  if (most) return { share: state.own / most, words: t("of_own", { n: state.own, all: most }) };
  if (!until) return null;
  const width = accuracy ? accuracy.high - accuracy.low : 1;
  const words = accuracy
    ? t("width_now", { width: number(100 * width, 1), until: number(100 * until, 1) })
    : t("width_wanted", { until: number(100 * until, 1) });
  return { share: accuracy ? Math.min(1, (until / width) ** 2) : 0, words };
}

function showProgress(numbers = state.numbers) {
  state.numbers = numbers;
  const found = progress(numbers?.accuracy);
  at("progress").hidden = !found;
  if (!found) return;
  const line = make(
    "div",
    { class: "progress-line" },
    make("progress", { max: 1, value: found.share, "aria-label": t("progress") }),
    make("span", {}, found.words),
  );
  const reached = numbers?.reached
    ? make("p", { class: "reached" }, t("reached"), " ", make("a", { href: "#finish" }, t("finish")))
    : null;
  at("progress").replaceChildren(...[line, reached].filter(Boolean));
}

// ---- numbers

// The server gives what it has at once; while it estimates anew, the page asks again.
let later = 0;
async function refreshNumbers() {
  clearTimeout(later);
  try {
    const numbers = await call("numbers", { annotator: state.name });
    at("numbers").replaceChildren(...numbersView(numbers));
    showProgress(numbers);
    clearTimeout(later);
    if (numbers.estimating) later = setTimeout(refreshNumbers, ESTIMATE_MS);
  } catch {
    // The next answer says what is wrong, if anything is.
  }
}

const FORMS = { pair: "form_pair", match: "form_match", sort: "form_sort", nearer: "form_nearer" };
const COUNTS = { match: "counts_match", sort: "counts_sort", nearer: "counts_nearer" };

// How long a question of a kind takes.
const paceWords = ([form, { seconds }]) =>
  t("pace", {
    form: t(FORMS[form]),
    seconds: number(seconds, seconds < 10 ? 1 : 0),
    n: Math.ceil((50 * seconds) / 60),
  });

function numbersView(numbers) {
  const { accuracy, classes, review, advice } = numbers;
  const counts = { same: numbers.n_same, different: numbers.n_different, unsure: numbers.n_unsure };
  const parts = [
    make("p", { class: "big", id: "n-answers" }, t("n_answers", { n: numbers.n_answers })),
    soft(t(isPrivate() ? "counts_private" : (COUNTS[state.start.design] ?? "counts"), counts)),
    ...Object.entries(numbers.pace).map((pace) => soft(paceWords(pace))),
  ];
  if (numbers.privacy)
    parts.push(make("h2", {}, t("privacy")), make("p", { id: "privacy", lang: "en" }, numbers.privacy));
  parts.push(make("h2", {}, t("accuracy")), ...accuracyView(numbers));
  if (classes.length) parts.push(make("h2", {}, t("classes_found")), ...classesView(classes));
  if (review.length) parts.push(make("h2", {}, t("review")), reviewLink(review.length));
  if (accuracy && advice)
    parts.push(
      make("h2", {}, t("go_on_question")),
      make("p", { id: "advice" }, adviceWords(advice, accuracy, numbers.reached)),
    );
  return parts;
}

function accuracyView({ accuracy, missing, estimating, classes }) {
  if (!accuracy && state.start.design === "nearer" && classes.length > 2) return [soft(t("no_accuracy"))];
  if (!accuracy)
    return [soft(estimating ? t("estimating") : missing ? t("too_few_random", { n: missing }) : t("none_yet"))];
  return [
    make("p", {}, make("b", {}, percent(accuracy.value, 1)), ` (${interval(accuracy)})`),
    soft(t("by_random", { n: accuracy.n_random })),
  ];
}

// Shares are by the random questions; before there are some, there are none to show.
function classesView(classes) {
  const known = classes.some((one) => one.share !== null);
  return [
    ...classes
      .slice(0, 30)
      .sort((one, other) => one.place - other.place)
      .map((one) =>
        make(
          "div",
          { class: known ? "class-share" : "class-count" },
          make("span", {}, classLabel(one), make("span", { class: "soft" }, ` (${number(one.n_points)})`)),
          ...(known ? [bar(one.share ?? 0), make("span", {}, percent(one.share || null))] : []),
        ),
      ),
    soft(t(known ? "classes_note" : "classes_count_note")),
  ];
}

function reviewLink(n) {
  return make("p", {}, make("a", { href: "#history" }, t("n_answers", { n })), " ", t("disagree", { n }));
}

// Few points to gain is no reason to stop while the accuracy itself is hardly known.
function adviceWords(advice, accuracy, reached) {
  const gain =
    advice.expected_gain < 0.0005
      ? t("gain_small", { n: advice.n_next })
      : t("gain", { n: advice.n_next, points: number(100 * advice.expected_gain, 1) });
  if (!advice.worth_going_on && (reached || !state.start.until)) return `${gain} ${t("may_stop")}`;
  return advice.is_wide
    ? `${gain} ${t("still_wide", { low: percent(accuracy.low), high: percent(accuracy.high) })}`
    : gain;
}

// ---- history

// What can be said of a question that has a few answers: words of a pair; a class or an example, none of them, unsure.
function waysOf({ form, items }) {
  if (form === "pair") return ["same", "different", "unsure"].map((word) => [word, t(word)]);
  const choices = items.slice(1);
  const labels = choices.map((choice) => (choice.place === null ? choice.title : classLabel(choice)));
  // Two that were merged since are of one class.
  const isShared = (label) => labels.indexOf(label) !== labels.lastIndexOf(label);
  return [
    ...labels.map((label, k) => [k, isShared(label) ? `${label} (${choices[k].id})` : label]),
    ...(form === "match" ? [["none", t("none")]] : []),
    ["unsure", t("unsure")],
  ];
}

// Its key is session and number.
const numberOf = (one) => one.key[1];

const sortedWords = ({ reply, items }) =>
  Array.isArray(reply) ? groupsInWords(reply, (k) => itemLabel(items[k])) : t("unsure");

// A window with the items, to sort them again.
function sortAgain(one, words, near) {
  const parts = ({ picture, title }) => (picture ? [{ kind: "image", src: picture }] : [{ kind: "text", text: title }]);
  const groups = Array.isArray(one.reply) ? one.reply.map((group) => (group === null ? null : group + 1)) : null;
  const items = one.items.map((item) => ({ ...item, parts: parts(item) }));
  const question = named({ form: "sort", items, ...(groups ? { groups } : {}) });
  const note = make("p", { class: "soft", role: "status" });
  const decide = (word) => {
    const reply = replyOf(word, question);
    if (reply === null) {
      note.textContent = t("place_two");
      return;
    }
    dialog.close();
    guarded(async () => {
      const { answer } = await insist("change", { annotator: state.name, key: one.key, reply });
      one.reply = answer.reply;
      words.textContent = sortedWords(one);
      say(t("changed", { n: numberOf(one), answer: sortedWords(one) }));
    });
  };
  const dialog = openDialog(
    near,
    titleOf(question),
    make("h2", {}, titleOf(question)),
    ...questionView(question, {}),
    note,
    make("div", { class: "answers" }, ...answerButtons(question, decide)),
  );
  dialog.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "z") question.back();
    const word = keyed(event, question);
    if (word === null) return;
    event.preventDefault();
    if (word !== USED) decide(word);
  });
}

function sortedCell(one, name) {
  const words = make("span", { class: "groups-said" }, sortedWords(one));
  const again = (event) => sortAgain(one, words, event.currentTarget);
  const label = `${t("change")}: ${name} ${numberOf(one)}`;
  return one.may_change
    ? make("div", {}, words, " ", make("button", { type: "button", "aria-label": label, onclick: again }, t("change")))
    : words;
}

function answerCell(one, name) {
  if (one.form === "sort") return sortedCell(one, name);
  const ways = waysOf(one);
  const words = (said) => ways.find(([way]) => way === said)[1];
  if (!one.may_change) return make("span", {}, words(one.reply));
  const change = async (event) => {
    const select = event.target;
    await guarded(async () => {
      const [reply] = ways[select.selectedIndex];
      await insist("change", { annotator: state.name, key: one.key, reply });
      say(
        t("changed", {
          n: numberOf(one),
          answer: one.form === "pair" ? words(reply).toLocaleLowerCase() : words(reply),
        }),
      );
      one.reply = reply;
    });
    select.value = one.reply;
  };
  const options = ways.map(([said, text]) => make("option", { value: said, selected: said === one.reply }, text));
  return make(
    "select",
    { "aria-label": `${name} ${numberOf(one)}: ${one.items[0].title}`, onchange: change },
    ...options,
  );
}

function endView(end) {
  const picture = end.picture
    ? make("img", { class: "thumb pixels", src: end.picture, alt: "", loading: "lazy" })
    : null;
  return make("div", { class: picture ? "with-picture" : null }, picture, make("span", { class: "end" }, end.title));
}

const withId = (end) =>
  make("div", {}, end.title === end.id ? null : make("span", { class: "soft" }, end.id), endView(end));

function comparedView(one) {
  if (one.form === "pair") return endView(one.items[1]);
  // Its groups name them by their ids.
  if (one.form === "sort") return make("div", { class: "thumbs" }, ...one.items.slice(1).map(withId));
  return typeof one.reply === "number"
    ? endView(one.items[1 + one.reply])
    : make("span", { class: "soft" }, t("n_classes", { n: one.items.length - 1 }));
}

// Cells are texts, elements or lists of these; a narrow screen has no place for columns from `optional` on.
function tableOf(head, rows, optional = head.length) {
  const line = (tag, cells, scope) =>
    make(
      "tr",
      {},
      ...cells.map((cell, k) => make(tag, { scope, class: k < optional ? null : "optional" }, ...[cell].flat())),
    );
  return make(
    "table",
    {},
    make("thead", {}, line("th", head, "col")),
    make("tbody", {}, ...rows.map((row) => line("td", row, null))),
  );
}

function headOfAnswers(answers) {
  const forms = new Set(answers.map((one) => one.form));
  if (forms.has("sort")) return [t("row"), t("others")];
  return forms.has("match") || forms.has("nearer") ? [t("row"), t("like_this")] : [t("first"), t("second")];
}

function answersTable(answers, name) {
  const head = [t("number"), ...headOfAnswers(answers), t("answer"), t("who"), t("when")];
  const when = (time) =>
    new Date(time).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  const answered = (one) => [
    answerCell(one, name),
    one.comment ? make("p", { class: "soft remark" }, one.comment) : null,
  ];
  return tableOf(
    head,
    answers.map((one) => [
      String(numberOf(one)),
      one.form === "sort" ? withId(one.items[0]) : endView(one.items[0]),
      comparedView(one),
      answered(one),
      one.annotator,
      when(one.time),
    ]),
    4,
  );
}

async function showHistory() {
  const [found, numbers] = await Promise.all([
    call("history", { begin: state.begin, annotator: state.name }),
    call("numbers", { annotator: state.name }),
  ]);
  const last = Math.min(found.begin + PAGE, found.total);
  at("list").replaceChildren(found.total ? answersTable(found.answers, t("answer")) : soft(t("no_answers")));
  at("range").textContent = found.total ? t("range", { first: found.begin + 1, last, n: found.total }) : "";
  at("newer").disabled = found.begin === 0;
  at("older").disabled = last >= found.total;
  at("review").replaceChildren(
    ...(numbers.review.length
      ? [
          make("h2", {}, t("review")),
          make("p", {}, t("review_text")),
          answersTable(numbers.review, t("doubtful_answer")),
        ]
      : []),
  );
}

const turn = (step) => {
  state.begin = Math.max(0, state.begin + step);
  attempt(showHistory);
};

// ---- people

// An interval says what is known; without one there is no number to compare people by.
const errorRate = (rate) =>
  rate ? `${percent(rate.value, 1)} (${interval(rate)})` : isPrivate() ? "–" : t("not_enough_answers");

async function showPeople() {
  const { people, couples, pace } = await call("people");
  const paces = Object.entries(pace);
  const named = (name) => name || t("no_name");
  const who = people.map((one) => [
    named(one.name),
    number(one.n_answers),
    percent(one.n_unsure / one.n_answers),
    errorRate(one.error_rate),
  ]);
  const pairs = couples.map((one) => [
    `${named(one.first)}, ${named(one.second)}`,
    number(one.n_both),
    `${number(one.n_agreed)} (${percent(one.n_agreed / one.n_both)})`,
  ]);
  at("agreement").replaceChildren(
    who.length ? tableOf([t("who"), t("answers"), t("unsure"), t("error_rate")], who) : soft(t("no_answers")),
    make("h2", {}, t("shared_questions")),
    pairs.length ? tableOf([t("who"), t("questions"), t("agreed")], pairs) : soft(t("none_yet")),
    soft(t("people_note")),
    make("h2", {}, t("duration")),
    paces.length
      ? make("ul", {}, ...paces.map((one) => make("li", {}, paceWords(one))))
      : soft(t("duration_unknown", { n: state.start.least_timed })),
  );
}

// ---- finish

function exampleView(thing) {
  const rows = fieldsOf(thing)
    .slice(0, EXAMPLE_FIELDS)
    .map(([name, value]) => make("div", {}, make("span", { class: "soft" }, `${name}: `), value));
  const parts = thing.parts
    .filter((part) => part.kind !== "fields")
    .map((part) => partView(part, thing.id, { still: part.kind === "text" }));
  return make("article", { "aria-label": t("example", { id: thing.id }) }, make("h2", {}, thing.id), ...parts, ...rows);
}

const shareWords = (one) =>
  one.share === null
    ? t("n_known", { n: one.n_points })
    : `${t("share", { share: percent(one.share) })} (${interval(one)})`;

async function showFinish() {
  const { classes } = await call("classes");
  state.classes = classes;
  const views = classes.map((one, k) => {
    const input = make("input", {
      id: `class-${k}`,
      maxlength: "60",
      autocomplete: "off",
      value: one.name,
      "data-ids": JSON.stringify(one.ids),
    });
    const head = make(
      "div",
      { class: "class-head" },
      make("label", { for: `class-${k}` }, t("name_of", { n: one.place + 1 })),
      input,
      make("span", { class: "soft" }, shareWords(one)),
    );
    return make("div", { class: "class" }, head, make("div", { class: "examples" }, ...one.examples.map(exampleView)));
  });
  at("classes").replaceChildren(...(views.length ? views : [soft(t("no_classes"))]));
}

const inHundred = (share) => number(Math.round(100 * share));

function headlineView({ accuracy }) {
  if (!accuracy) return [make("p", { class: "headline" }, t("no_headline")), make("p", {}, t("no_headline_text"))];
  const values = {
    value: inHundred(accuracy.value),
    // Rounded down: it is promised.
    low: number(Math.floor(Math.round(1000 * accuracy.low) / 10)),
    high: inHundred(accuracy.high),
    n: Math.round(accuracy.n),
  };
  const basis =
    { "random questions": "headline_random", "held-out answers": "headline_answers" }[accuracy.basis] ??
    "headline_rows";
  return [
    make("p", { class: "headline" }, t(accuracy.value < NEARLY_ALL ? "headline" : "headline_all", values)),
    make("p", { class: "soft" }, t(basis, values)),
  ];
}

function foundView(classes) {
  return classes.map((one) =>
    make(
      "div",
      { class: "found" },
      make("h3", {}, one.name),
      one.place === null ? null : soft(t("in_questions", { n: one.place + 1 })),
      one.share === null
        ? null
        : make("div", { class: "found-share" }, bar(one.share), make("span", {}, percent(one.share))),
      make("div", { class: "thumbs" }, ...one.examples.map(endView)),
    ),
  );
}

function askedView({ asked }) {
  const rows = asked.map((one) => [withId(one.thing), one.class, percent(one.probability, 1), number(one.n_answers)]);
  const table = tableOf([t("row"), t("class"), t("probability"), t("answers")], rows);
  return [
    make("h3", {}, t("asked_rows")),
    make("p", {}, t("asked_text")),
    make("div", { class: "fields-box", tabindex: "0", role: "group", "aria-label": t("asked_rows") }, table),
  ];
}

function commandView(text) {
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => say(t("copied")),
      () => say(t("not_copied"), true),
    );
  return make(
    "div",
    { class: "command" },
    make("pre", { tabindex: "0" }, text),
    make("button", { type: "button", onclick: copy }, t("copy")),
  );
}

// The accuracy is that on new rows; rows with answers are known better.
function theseRows({ these }) {
  if (!these) return [];
  const all = these.share === null ? [] : [t("all_rows_right", { n: these.n_rows, value: inHundred(these.share) })];
  return [soft([t("asked_right", { n: these.n_asked, value: inHundred(these.asked) }), ...all].join(" "))];
}

function resultView(result) {
  const download = (href, name, words) => make("a", { class: "button", href, download: name }, words);
  const excel = result.excel ? download("classes.xlsx", "classes.xlsx", t("download_excel")) : "";
  // Who is at another machine cannot run a command on this one.
  const here = !state.start.need_name;
  return [
    make("div", { class: "card" }, ...headlineView(result), ...theseRows(result)),
    make("h2", {}, t("classes")),
    make("div", { class: "all-found" }, ...foundView(result.classes)),
    make("h2", {}, t("all_rows")),
    make("p", {}, t("all_rows_text")),
    make("p", { class: "more" }, download("classes.csv", "classes.csv", t("download_all")), excel),
    make("h2", {}, t("asked_rows")),
    make("p", {}, t("asked_download", { n: result.n_asked })),
    make("p", {}, download("answered", "answered.csv", t("download_asked"))),
    make(
      "p",
      {},
      make("a", { href: "report", target: "_blank" }, t("report")),
      " · ",
      make("a", { href: "answers", download: "answers.csv" }, t("download_answers")),
    ),
    ...(here ? [make("h2", {}, t("what_now")), make("p", {}, t("use_it")), commandView(result.predict)] : []),
    make(
      "details",
      {},
      make("summary", {}, t("everything_else")),
      here ? make("ul", { lang: "en" }, ...result.lines.map((line) => make("li", {}, line))) : null,
      ...askedView(result),
      ...(here ? [make("h3", {}, t("fit_again")), commandView(result.fit)] : []),
      make(
        "p",
        { class: "soft" },
        t("files", { model: result.model, report: result.report, answered: result.answered }),
      ),
    ),
  ];
}

function fit(event) {
  event.preventDefault();
  const labels = {};
  for (const input of at("classes").querySelectorAll("input"))
    for (const id of JSON.parse(input.dataset.ids)) labels[id] = input.value;
  guarded(async () => {
    say(t("fitting"));
    const result = await call("finish", { annotator: state.name, labels }, true);
    at("result").replaceChildren(...resultView(result));
    at("naming-box").open = false;
    say(t("fitted", { model: result.model }));
    at("finish-title").focus();
    window.scrollTo(0, 0);
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
  if (name !== "ask") state.since = null;
  if (focus) at(`${name}-title`).focus();
  window.scrollTo(0, 0);
  attempt(pages[name]);
}

const open = () =>
  guarded(async () => {
    if (state.start.need_name && !state.name) {
      say(t("name_first"), true);
      at("name").focus();
      return;
    }
    const result = await call("question", { annotator: state.name });
    at("instructions").open = !result.own;
    showQuestion(result, result.answers ? t("answers_so_far", { n: result.answers }) : "", true);
    refreshNumbers();
  });

function setName(event) {
  event.preventDefault();
  state.name = at("name").value.trim();
  sessionStorage.setItem("name", state.name);
  at("ask-title").focus();
  open();
}

async function translate(language) {
  const response = await fetch(`texts/${language}.json`, { cache: "no-store" });
  speak(language, await response.json());
  document.documentElement.lang = language;
  const put = {
    t: (element, text) => {
      element.textContent = text;
    },
    tLabel: (element, text) => element.setAttribute("aria-label", text),
    tPlaceholder: (element, text) => element.setAttribute("placeholder", text),
  };
  for (const element of document.querySelectorAll("[data-t], [data-t-label], [data-t-placeholder]"))
    for (const [name, set] of Object.entries(put)) if (element.dataset[name]) set(element, t(element.dataset[name]));
}

async function begin() {
  state.start = await call("start");
  const { start } = state;
  await translate(start.language);
  at("title").textContent = start.title;
  document.title = `${heading(null)} ${start.title}`;
  at("private").hidden = !isPrivate();
  at("private").textContent = isPrivate() ? t("private", { rate: percent(start.flip_rate, 1) }) : "";
  at("comment").hidden = isPrivate();
  const instructions = start.instructions || (start.demo ? t("demonstration") : "");
  at("instructions").hidden = !instructions;
  at("instructions")
    .querySelector("div")
    .replaceChildren(...markdown(instructions));
  state.name = sessionStorage.getItem("name") ?? start.annotator;
  at("name").value = state.name;
  at("known").append(...start.people.filter(Boolean).map((name) => make("option", { value: name })));
  const clicks = { undo, skip, pause, newer: () => turn(-PAGE), older: () => turn(PAGE) };
  for (const [id, action] of Object.entries(clicks)) at(id).addEventListener("click", action);
  at("who").addEventListener("submit", setName);
  at("naming").addEventListener("submit", fit);
  window.addEventListener("hashchange", () => route());
  document.addEventListener("visibilitychange", () => {
    // Nobody knows what a person did meanwhile.
    if (document.hidden) state.since = null;
  });
  await open();
  route(false);
}

begin().catch((error) => say(error.message, true));
