/** The package brings no types: what is used of it. */
declare module 'fs-native-extensions' {
  const binding: {
    /** Of the whole file, by the kernel; false when somebody else has it. */
    tryLock(descriptor: number): boolean;
  };
  export = binding;
}
