import eslint from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** Few rules, each seen failing once; nothing about length or complexity. */
export default defineConfig(
  { ignores: ['dist/', '.dist-*/', 'data/', 'coverage/', 'node_modules/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  eslint.configs.recommended,
  {
    files: ['**/*.mjs'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
      },
    },
  },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A boundary rule can tell a type from a dependency only by this. The rule leaves files with decorators alone: injection needs the value.
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // A port's method is async whether or not an adapter has to wait.
      '@typescript-eslint/require-await': 'off',
      // Callbacks of Node and Nest may return what nobody waits for, but a promise in a condition or a spread is a bug.
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { attributes: false, inheritedMethods: false, arguments: true } }],
      '@typescript-eslint/no-unused-vars': ['error', { args: 'after-used', argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      // A name is found by searching for it only when the import cannot rename it.
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true, named: true, defaultFrom: true, namedFrom: true, namespaceFrom: true } }],
      // Every setting is in one generated table only if all are read in one place.
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: 'Declare a setting in libs/platform/src/config.' }],
      'no-restricted-imports': ['error', { paths: [{ name: 'node:process', message: 'Use the global; settings come from libs/platform/src/config.' }] }],
    },
  },
  { files: ['libs/platform/src/config/**/*.ts'], rules: { 'no-restricted-properties': 'off' } },
  {
    // Specs read answers of unknown shape, and what they assert is the check.
    files: ['**/*.spec.ts', '**/*.contract.ts', 'libs/testing/**/*.ts', 'test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
);
