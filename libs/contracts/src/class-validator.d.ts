/** The one part of class-validator that declaring rules takes: the whole of it costs every process 130 ms and 16 MB at start. */
declare module 'class-validator/cjs/register-decorator.js' {
  export { registerDecorator } from 'class-validator';
}
