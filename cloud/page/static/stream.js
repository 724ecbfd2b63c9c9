// The run, fetched whole once and then followed. A stream that breaks is taken up by the browser itself, which says the
// last message that it has and gets those that it missed. All is fetched anew only if the server says that they are gone,
// as they are after its restart, if it refuses the stream, or if nothing is heard for long. A finished run is followed as
// long as its zones train alone: the server then says how that came out, and ends.

const KINDS = ["status", "plan", "news", "alone"];
const WAITS = [500, 1000, 2000, 4000, 8000];
const ANSWER_WITHIN = 20_000; // ms
const SILENCE = 40_000; // ms: a living stream says something every fifteen seconds

export class Stream {
  constructor(store) {
    this._store = store;
    this._source = null;
    this._tries = 0;
    this._silence = 0; // a timer
  }

  async start() {
    try {
      const answer = await fetch("/api/run", { cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN) });
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      const run = await answer.json();
      this._store.load(run);
      if (run.run.live || run.run.comparing) this._follow(run.sequence);
      else this._say("finished");
    } catch (error) {
      this._again(error.message);
    }
  }

  _follow(sequence) {
    this._source?.close();
    const source = (this._source = new EventSource(`/api/events?after=${sequence}`));
    this._heard(source);
    source.onopen = () => {
      this._tries = 0; // not before: who gets the picture and no stream must not fetch it again and again
      this._heard(source);
      this._say();
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) this._lose(source, "the connection is refused");
      else if (source === this._source) this._miss("the connection is lost");
    };
    source.addEventListener("beat", () => this._heard(source));
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        if (source !== this._source) return;
        this._heard(source);
        if (this._store.apply(kind, JSON.parse(event.data))) this._say();
        else this._reload(source);
      });
    }
    source.addEventListener("reload", () => this._reload(source));
  }

  // A line may die without a word: a laptop that slept, a tunnel that fell. No error comes then, only silence.
  _heard(source) {
    clearTimeout(this._silence);
    this._silence = setTimeout(() => this._lose(source, "nothing was heard for a while"), SILENCE);
  }

  _lose(source, problem) {
    source.close();
    if (source !== this._source) return;
    this._source = null;
    clearTimeout(this._silence);
    this._again(problem);
  }

  _reload(source) {
    source.close();
    if (source !== this._source) return;
    this._source = null;
    this.start();
  }

  _say(link = this._store.status.finished ? "finished" : "live") {
    this._store.problem = "";
    this._store.set("link", link);
  }

  // Of a run that is over nobody need serve a page any more, as when `sgfusion up` has ended.
  _miss(problem) {
    this._store.problem = problem;
    this._store.set("link", this._store.status?.finished ? "closed" : "reconnecting");
  }

  _again(problem) {
    this._miss(problem);
    const wait = WAITS[Math.min(this._tries++, WAITS.length - 1)];
    setTimeout(() => this.start(), wait);
  }
}
