CHECKS=[]
class Check: pass
