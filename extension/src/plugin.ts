/** Tells the renderer which application it is in, so that an explorer can be opened beside it. */

import { useApplication, type Application } from './panel.js';

const plugin = {
  id: 'nbcomp-lab:plugin',
  description: 'Opens the explorer of a compilation in a panel.',
  autoStart: true,
  activate: (app: Application): void => useApplication(app)
};

export default plugin;
