/** Rules of this house, for oxlint. test/lint.spec.ts plants what each of them refuses. */

/** What is exported again may be either, and is the value. */
const isOfType = ({ identifier, isTypeReference }) => isTypeReference && identifier.parent?.type !== 'ExportSpecifier';

/** As `consistent-type-imports`, which knows nothing of injection: where there are decorators, the value is needed. */
const importsOfTypes = {
  create(context) {
    let hasDecorators = false;
    const imports = [];
    return {
      Decorator() {
        hasDecorators = true;
      },
      ImportDeclaration(node) {
        if (node.importKind !== 'type') imports.push(node);
      },
      'Program:exit'() {
        if (hasDecorators) return;
        for (const node of imports)
          for (const { local, importKind } of node.specifiers) {
            const references = context.sourceCode.getDeclaredVariables(node).find(({ name }) => name === local.name)?.references ?? [];
            if (importKind !== 'type' && references.length > 0 && references.every(isOfType))
              context.report({ node, message: `${local.name} is used as a type only: import it with \`type\`.` });
          }
      },
    };
  },
};

const isCallOf = (node, object, ...methods) =>
  node?.type === 'CallExpression' &&
  node.callee.type === 'MemberExpression' &&
  node.callee.object.name === object &&
  methods.includes(node.callee.property.name);

/** A failure is seen again only by whoever knows by what the choices were made. */
const seededChance = {
  create(context) {
    const refuse = (node) => context.report({ node, message: 'Take choices from a seed that a failure names: seedOf(…) of libs/testing/src/seed.ts.' });
    return {
      CallExpression(node) {
        if (isCallOf(node, 'Math', 'random')) refuse(node);
        const given = isCallOf(node, 'fc', 'assert', 'check', 'sample') ? (node.arguments[1]?.properties ?? []) : null;
        if (given !== null && !given.some((each) => each.type === 'SpreadElement' || each.key.name === 'seed')) refuse(node);
      },
      ImportSpecifier(node) {
        if (node.imported.name === 'randomInt') refuse(node);
      },
    };
  },
};

const isNow = (node) => isCallOf(node, 'Date', 'now') || isCallOf(node, 'performance', 'now');
const isMeasured = (node) => node?.type === 'BinaryExpression' && (isNow(node.left) || isNow(node.right));

/** What is right takes longer on a machine that is busy. */
const noFixedTime = {
  create(context) {
    return {
      CallExpression(node) {
        const limit = String(node.parent?.property?.name).startsWith('toBeLess') ? node.parent.parent.arguments?.[0] : undefined;
        if (node.callee.name === 'expect' && limit !== undefined && isMeasured(node.arguments[0]) && limit.callee?.name !== 'mayTake')
          context.report({
            node,
            message: 'Count what was done, or hold time to what it may take on a machine as busy as this: mayTake(…) of libs/testing/src/until.ts.',
          });
      },
    };
  },
};

export default {
  meta: { name: 'house' },
  rules: { 'imports-of-types': importsOfTypes, 'seeded-chance': seededChance, 'no-fixed-time': noFixedTime },
};
