// The question in a cell of a notebook: follows view.js in one script.
function render({ model, el }) {
  const root = make("div", {
    class: "sdulearn cell",
    tabindex: "0",
    role: "group",
    "aria-label": t("same_or_different"),
    "data-lm-suppress-shortcuts": "true",
  });
  const title = make("h3", {});
  const things = make("div", {});
  const answers = make("div", { class: "answers" });
  const status = make("span", { class: "soft", role: "status" });
  const send = (word) => {
    const reply = question?.form === "sort" ? replyOf(word, question) : word;
    if (reply === null) status.textContent = t("place_two");
    else model.send({ reply });
  };
  const back = () => question?.back?.() || model.send({ reply: "undo" });
  const undo = make(
    "button",
    { type: "button", "aria-keyshortcuts": "Z", onclick: back },
    t("undo"),
    " ",
    make("kbd", {}, "Z"),
  );
  root.append(title, things, answers, make("div", { class: "more" }, undo, status));
  let question = null;

  const draw = () => {
    const shown = model.get("shown");
    const hadFocus = root.contains(document.activeElement);
    question = shown.question && named(shown.question);
    title.textContent = question ? titleOf(question) : "";
    things.replaceChildren(...(question ? questionView(question, { pick: send }) : []));
    answers.replaceChildren(...(question ? answerButtons(question, send) : []));
    status.textContent = shown.status;
    // What had the focus may be gone.
    if (hadFocus && !root.contains(document.activeElement)) root.focus({ preventScroll: true });
  };

  root.addEventListener("keydown", (event) => {
    if (isTaken(event)) return;
    const said = question ? keyed(event, question) : null;
    const isUndo = event.key.toLowerCase() === "z";
    if (said === null && !isUndo) return;
    event.preventDefault();
    event.stopPropagation();
    if (isUndo) back();
    else if (said !== USED) send(said);
  });
  model.on("change:shown", draw);
  draw();
  el.append(root);
}

export default { render };
