/** The renderer of compilations in JupyterLab and Notebook, in untrusted notebooks too. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { explore } from './explorer.js';
import { listen, type SessionContext } from './kernels.js';
import { openElsewhere } from './panel.js';
import { MIME } from './payload.js';

class Renderer extends Widget implements IRenderMime.IRenderer {
  constructor() {
    super();
    this.addClass('nbx-output');
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const plain = model.data['text/plain'];
    explore(this.node, model.data[MIME], {
      plain: typeof plain === 'string' ? plain : '',
      open: { label: 'Open in more room', act: openElsewhere }
    });
    return Promise.resolve();
  }

  /** The notebook it is in is known only now. */
  protected override onAfterAttach(): void {
    for (let around = this.parent; around; around = around.parent) {
      const { sessionContext } = around as Widget & { sessionContext?: SessionContext };
      if (sessionContext) {
        listen(sessionContext);
      }
    }
  }
}

const extension: IRenderMime.IExtension = {
  id: 'nbcomp-lab:mime',
  // Safe: everything shown is text, whatever the notebook holds.
  rendererFactory: { safe: true, mimeTypes: [MIME], createRenderer: () => new Renderer() },
  rank: 0,
  dataType: 'json'
};

export default extension;
