import './all.ts';
import { operationsTable } from './operations-table.ts';

process.stdout.write(operationsTable());
