/** Says by what the choices of a run were made, where somebody looks who wants to see it again. */
export default class SeedReporter {
  onRunComplete() {
    console.error(`\nChosen by SEED=${process.env.SEED}.`);
  }
}
