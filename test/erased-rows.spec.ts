import { rowsOfErasedPeople } from './erased-rows.contract.ts';

rowsOfErasedPeople('embedded', {});
