/// The page by which a browser calls, and its script.
enum WebRTCPage {
    static let html = """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <title>media-tool</title>
        <link rel="icon" href="data:,">
        <link rel="stylesheet" href="/call.css">
        <h1>media-tool</h1>
        <p><button id="call">Call</button> <button id="hold" disabled>Hold</button> <button id="end" disabled>Hang up</button></p>
        <p id="keys"></p>
        <p id="state">Not in a call.</p>
        <audio id="sound" autoplay></audio>
        <script src="/call.js"></script>
        </html>

        """

    static let style = """
        body { font: 1.1rem/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 30rem; padding: 0 1rem }
        button { font: inherit; min-width: 3rem; padding: .4rem 1rem }
        #keys button { margin: .1rem }

        """

    /// It posts its offer, and gets the answer for it (WHIP, RFC 9725), and the same for each change; each second it tells what it
    /// hears.
    static let script = """
        const at = id => document.getElementById(id)
        const say = text => { at('state').textContent = text }
        let peer, place, timer, sender, changes, direction, restarting

        async function call() {
          at('call').disabled = true
          try {
            const microphone = await navigator.mediaDevices.getUserMedia({ audio: true })
            peer = new RTCPeerConnection()
            sender = peer.addTrack(microphone.getTracks()[0], microphone)
            peer.ontrack = event => { at('sound').srcObject = new MediaStream([event.track]) }
            peer.onconnectionstatechange = () => {
              if (!peer) return
              say(`The call is ${peer.connectionState}.`)
              if (peer.connectionState === 'disconnected') restart()
              if (peer.connectionState === 'failed') end()
            }
            const mine = peer
            direction = 'sendrecv'
            changes = exchange('POST', '/call')
            await changes
            if (peer !== mine) return
            at('hold').disabled = at('end').disabled = false
            timer = setInterval(tell, 1000)
          } catch (error) {
            end()
            say(`No call: ${error.message}`)
          }
        }

        async function exchange(method, where) {
          const mine = peer
          mine.getTransceivers()[0].direction = direction
          await mine.setLocalDescription()
          const response = await fetch(where, {
            method, headers: { 'Content-Type': 'application/sdp' }, body: mine.localDescription.sdp
          })
          const text = await response.text()
          const made = response.headers.get('Location')
          if (peer !== mine) {
            if (made) fetch(made, { method: 'DELETE', keepalive: true })
            return
          }
          if (!response.ok) throw new Error(text)
          place = made ?? place
          await mine.setRemoteDescription({ type: 'answer', sdp: text })
          const isHeld = mine.getTransceivers()[0].currentDirection === 'inactive'
          at('hold').textContent = isHeld ? 'Resume' : 'Hold'
        }

        // One after the other; what is refused, or does not get through, may be asked for again.
        function change() {
          const mine = peer
          changes = changes.then(async () => {
            if (peer !== mine) return
            const wished = direction
            try {
              await exchange('PATCH', place)
            } catch (error) {
              if (peer !== mine) return
              say(`No change: ${error.message}`)
              if (direction === wished) direction = mine.getTransceivers()[0].currentDirection ?? 'sendrecv'
              if (mine.signalingState === 'have-local-offer') await mine.setLocalDescription({ type: 'rollback' })
            }
          })
          return changes
        }

        // A new way is looked for, as when the network has changed, until there is one.
        async function restart() {
          const mine = peer
          if (restarting === mine) return
          restarting = mine
          do {
            mine.restartIce()
            await change()
            await new Promise(resolve => setTimeout(resolve, 2000))
          } while (peer === mine && mine.connectionState === 'disconnected')
          if (restarting === mine) restarting = undefined
        }

        function hold(isHeld) {
          direction = isHeld ? 'inactive' : 'sendrecv'
          return change()
        }

        async function tell() {
          const mine = place
          const heard = { packets: 0, lost: 0, energy: 0, seconds: 0 }
          for (const report of (await peer.getStats()).values()) {
            if (report.type !== 'inbound-rtp' || report.kind !== 'audio') continue
            heard.packets = report.packetsReceived
            heard.lost = report.packetsLost
            heard.energy = report.totalAudioEnergy ?? 0
            heard.seconds = report.totalSamplesDuration ?? 0
          }
          const response = await fetch(`${mine}/heard`, {
            method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(heard)
          }).catch(() => undefined)
          if (response?.status === 404 && place === mine) end()
        }

        function end() {
          clearInterval(timer)
          peer?.getSenders().forEach(sender => sender.track?.stop())
          peer?.close()
          if (place) fetch(place, { method: 'DELETE', keepalive: true })
          peer = place = sender = undefined
          at('call').disabled = false
          at('hold').disabled = at('end').disabled = true
          at('hold').textContent = 'Hold'
          say('Not in a call.')
        }

        for (const key of '123456789*0#') {
          const button = document.createElement('button')
          button.textContent = key
          button.onclick = () => sender?.dtmf?.insertDTMF(key)
          at('keys').append(button)
        }
        at('call').onclick = call
        at('end').onclick = end
        at('hold').onclick = () => hold(at('hold').textContent === 'Hold')
        addEventListener('pagehide', end)
        const [, now, seconds] = location.hash.match(/^#(call)(?:=(\\d+))?$/) ?? []
        if (now) call().then(() => { if (seconds) setTimeout(end, seconds * 1000) })

        """
}
